{%- set hosts = [] %}
{%- for event in events %}
{%-   do hosts.append(event['id']) %}
{%- endfor %}
ticket:
  runner.event.send:
    - tag: ticket/open
    - data:
        subject: states fail
        job: {{ key | yaml_encode }}
        hosts: {{ hosts | unique | sort | json }}
