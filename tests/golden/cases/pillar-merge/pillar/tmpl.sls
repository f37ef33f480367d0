#!jinja|yaml
{% set x = 'from cmd' %}
cmd: {{ x }}
secret: |
  multi
  line
opts_id: {{ opts['id'] }}
env: {{ saltenv }}
{% for i in range(2) %}
n{{ i }}: {{ i }}
{% endfor %}
