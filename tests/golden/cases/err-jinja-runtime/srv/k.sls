a:
  test.nop:
    - x: {{ grains['nosuchgrain'] }}
