{% set port = salt['pillar.get']('web:port', 80) %}
{% if grains['os_family'] == 'RedHat' %}
{% set package = 'httpd' %}
{% else %}
{% set package = 'apache2' %}
{% endif %}

web server:
  pkg.installed:
    - name: {{ package }}
  service.running:
    - name: {{ package }}
    - watch:
      - file: /etc/web/site.conf

/etc/web/site.conf:
  file.managed:
    - source: salt://web/site.conf
    - template: jinja
    - mode: '0644'
    - makedirs: True
    - context:
        port: {{ port }}
    - require:
      - pkg: web server
