include:
  - inc
a:
  test.nop:
    - require:
      - sls: inc
b:
  test.nop:
    - watch:
      - test: z*
c:
  test.nop:
    - onchanges:
      - sls: inc
d:
  test.nop:
    - require:
      - sls: no*
e:
  test.nop:
    - require:
      - test: z?
      - "[yz]1"
