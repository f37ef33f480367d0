good: test.nop
bad: test.fail_without_changes
handler:
  test.nop:
    - onfail:
      - test: bad
handler2:
  test.nop:
    - onfail:
      - test: good
      - test: bad
handler3:
  test.nop:
    - onfail:
      - test: good
all:
  test.nop:
    - onfail_all:
      - test: good
      - test: bad
any:
  test.nop:
    - onfail_any:
      - test: good
      - test: bad
after_handler:
  test.nop:
    - require:
      - test: handler
after_none:
  test.nop:
    - require:
      - test: handler3
both:
  test.nop:
    - onfail:
      - test: bad
    - require:
      - test: good
