{% from "lib.jinja" import m %}
{{ m('x') }}
