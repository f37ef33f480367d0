gone:
  ini.options_absent:
    - name: ROOT/box/a.ini
    - sections:
        first: [key, never]
        nosection: [x]
sections_gone:
  ini.sections_absent:
    - name: ROOT/box/a.ini
    - sections: [second, never]
no_file:
  ini.sections_absent:
    - name: ROOT/box/never.ini
    - sections: [second]
