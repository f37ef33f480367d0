a:
  test.nop:
    - x: {{ pillar['a']['b'] }}
