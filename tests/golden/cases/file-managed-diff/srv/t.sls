ROOT/box/f:
  file.managed:
    - contents: |
        one
        2
        three
        four
        five
        six
        seven
        eight
        nine
        ten
        10.5
        eleven
    - backup: minion
ROOT/box/nonl:
  file.managed:
    - contents: a
    - contents_newline: False
ROOT/box/mode:
  file.managed:
    - contents: same
    - mode: 600
