x:
  test.nop:
   - a
  - b
