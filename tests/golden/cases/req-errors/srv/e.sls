x:
  test.nop:
    - onchanges_in:
      - test: nosuch
