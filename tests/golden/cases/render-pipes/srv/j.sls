#!json
{"a": {"test.nop": [{"name": "x"}]}}
