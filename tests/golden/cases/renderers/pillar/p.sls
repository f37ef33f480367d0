#!jinja|json
{"p": {{ 1 + 1 }}}
