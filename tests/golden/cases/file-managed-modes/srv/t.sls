{% for m in ['0644', '644', '0o600', '1777', '4755', '0'] %}
ROOT/box/s{{ loop.index }}:
  file.managed:
    - contents: x
    - mode: '{{ m }}'
{% endfor %}
{% for m in [644, 755, 600, '0755'] %}
ROOT/box/n{{ loop.index }}:
  file.managed:
    - contents: x
    - mode: {{ m }}
{% endfor %}
ROOT/box/owner:
  file.managed:
    - contents: x
    - user: nobody
    - group: nogroup
ROOT/box/uid:
  file.managed:
    - contents: x
    - user: 65534
    - group: 0
