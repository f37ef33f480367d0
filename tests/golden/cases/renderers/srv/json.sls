#!json
{"a": {"test.nop": [{"name": "{{ 1 }}"}]}}
