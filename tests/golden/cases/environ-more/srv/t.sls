map_with_false:
  environ.setenv:
    - name: x
    - value: {GOLDEN_X: 'a', GOLDEN_Y: False}
empty:
  environ.setenv:
    - name: GOLDEN_E
    - value: ''
seen:
  cmd.run:
    - name: echo "$GOLDEN_X|$GOLDEN_Y|${GOLDEN_E-unset}"
own_wins:
  cmd.run:
    - name: echo $GOLDEN_X
    - env: [GOLDEN_X: own]
in_template:
  file.managed:
    - name: ROOT/box/t
    - source: salt://e.jinja
    - template: jinja
