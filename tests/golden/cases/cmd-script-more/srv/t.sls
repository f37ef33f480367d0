list_args:
  cmd.script:
    - source: salt://py.py
    - args: [one, 'two words', 3]
stdin:
  cmd.script:
    - source: salt://big.sh
    - stdin: given
onlyif:
  cmd.script:
    - source: salt://py.py
    - onlyif: 'false'
retcodes:
  cmd.script:
    - source: salt://exit.sh
    - success_retcodes: [5]
