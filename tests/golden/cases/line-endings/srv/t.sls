{% for name in ['added', 'replaced'] %}
{{ name }}:
  file.blockreplace:
    - name: ROOT/box/{{ name }}
    - marker_start: '# S'
    - marker_end: '# E'
    - content: "l1\nl2"
    - append_if_not_found: True
{% endfor %}
reverse:
  file.blockreplace:
    - name: ROOT/box/reverse
    - marker_start: '# S'
    - marker_end: '# E'
    - content: "l1\r\nl2"
    - prepend_if_not_found: True
appended:
  file.append:
    - name: ROOT/box/appended
    - text: c
commented:
  file.comment:
    - name: ROOT/box/commented
    - regex: ^two
changed:
  file.replace:
    - name: ROOT/box/changed
    - pattern: two
    - repl: three
