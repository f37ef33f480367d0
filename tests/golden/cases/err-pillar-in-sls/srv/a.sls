a:
  test.nop:
    - x: {{ pillar.nokey }}
