{% nosuchtag %}
a:
  test.nop
