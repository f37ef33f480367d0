{% for name in ['stripped', 'included', 'open'] %}
ROOT/box/{{ name }}:
  file.managed:
    - source: salt://t/{{ name }}
    - template: jinja
{% endfor %}
