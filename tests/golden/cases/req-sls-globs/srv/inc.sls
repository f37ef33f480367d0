z1:
  test.succeed_with_changes
z2:
  test.nop
y1:
  test.nop
