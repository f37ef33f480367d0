one:
  environ.setenv:
    - name: GOLDEN_A
    - value: x
again:
  environ.setenv:
    - name: GOLDEN_A
    - value: x
several:
  environ.setenv:
    - name: unused
    - value: {GOLDEN_B: '1', GOLDEN_C: two}
seen:
  cmd.run:
    - name: echo $GOLDEN_A $GOLDEN_B $GOLDEN_C
remove:
  environ.setenv:
    - name: GOLDEN_A
    - value: False
    - false_unsets: True
after:
  cmd.run:
    - name: echo "[$GOLDEN_A]"
number:
  environ.setenv:
    - name: GOLDEN_N
    - value: 7
