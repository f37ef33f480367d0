x:
  test.nop:
    - v: {{ {"y": nowhere}.y | default("gone") }}
    - w: {{ salt["pillar.get"]("none", nowhere) }}
