a:
  test.nop
---
b:
  test.nop
