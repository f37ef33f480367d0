{% from "nosuch.jinja" import x %}
a:
  test.nop
