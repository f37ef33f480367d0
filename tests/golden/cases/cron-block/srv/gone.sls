{% for id, cmd in [('one', '/bin/a'), ('two', '/bin/b'), ('three', '/bin/c'), ('four', '/bin/d'), ('five', '/bin/e')] %}
cron-{{ id }}:
  cron.absent:
    - name: {{ cmd }}
    - identifier: {{ id }}
    - user: root
{% endfor %}
