{% set x = 'q' %}
a:
  test.nop:
    - anchor: &x
        one: 1
        two: 2
    - merged:
        <<: *x
        two: 3
        three: 4
    - alias: *x
    - words: {yes: 1, 7: 2, 1.5: 3, ~: 4, '8': 5}
    - {{ x }}: {{ x }}{{ x }}
    - "quoted key": 'v'
    - ? complex
      : value
