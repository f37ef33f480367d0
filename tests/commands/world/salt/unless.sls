skipped:
  test.nop:
    - unless: 'true'
only:
  test.nop:
    - onlyif: 'false'
named:
  test.nop:
    - names: [b, a]
