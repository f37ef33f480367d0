#!jinja|json
{"a": {"test.nop": [{"name": "{{ 1 + 1 }}"}]}}
