{% for name, more in {'plain': {'seconds': 30}, 'args': {'hours': 1, 'job_args': ['a', 1], 'job_kwargs': {'k': 'v'}}, 'cron': {'cron': '0 3 * * *'}, 'when': {'when': '5:00pm'}, 'list': {'when': ['Monday 5:00pm', 'Tuesday 3:00pm']}, 'splay': {'minutes': 5, 'splay': {'start': 1, 'end': 5}, 'maxrunning': 3, 'returner': 'local', 'jid_include': False}, 'days': {'days': 2, 'enabled': False, 'return_job': False, 'metadata': {'a': 'b'}}, 'range': {'seconds': 5, 'range': {'start': '8:00am', 'end': '5:00pm'}, 'run_on_start': True}, 'once': {'once': '2036-01-01T00:00:00', 'once_fmt': '%Y-%m-%dT%H:%M:%S'}, 'until': {'seconds': 5, 'until': '12/31/2036 11:59pm', 'after': '12/31/2035 11:59pm'}}.items() %}
{{ name }}:
  schedule.present:
    - function: test.ping
    - offline: True
{% for key, value in more.items() %}
    - {{ key }}: {{ value | json }}
{% endfor %}
{% endfor %}
no_function:
  schedule.present:
    - seconds: 5
    - offline: True
no_time:
  schedule.present:
    - function: test.ping
    - offline: True
