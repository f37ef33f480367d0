{% from "./a/lib.jinja" import where %}
x:
  test.nop:
    - comment: {{ where }} {{ tpldir }} {{ slspath }}|
