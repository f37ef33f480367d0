{% for name, user, group in [('u', 'nobody9', 'root'), ('g', 'root', 'nogroup9'), ('both', 'nobody9', 'nogroup9')] %}
ROOT/box/{{ name }}:
  file.symlink:
    - target: /x
    - user: {{ user }}
    - group: {{ group }}
{% endfor %}
