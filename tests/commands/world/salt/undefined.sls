one:
  test.nop:
    - name: {{ pillar['nothere'] }}
