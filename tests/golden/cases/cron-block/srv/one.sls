{% for id, cmd in [('one', '/bin/a'), ('two', '/bin/b'), ('three', '/bin/c'), ('four', '/bin/d'), ('five', '/bin/e')] %}
cron-{{ id }}:
  cron.present:
    - name: {{ cmd }}
    - identifier: {{ id }}
    - user: root
    - minute: 5
    - hour: 3
{% endfor %}
