#!jinja|json
{"base": {"*": ["p", "y"]}}
