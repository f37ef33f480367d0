top:
  ini.options_absent:
    - name: ROOT/box/a.ini
    - sections:
        - top
several:
  ini.options_absent:
    - name: ROOT/box/e.ini
    - sections:
        a: [f, t, never]
        mysqld: [key]
colon:
  ini.options_absent:
    - name: ROOT/box/colon.ini
    - separator: ':'
    - sections:
        s: [b]
sections:
  ini.sections_absent:
    - name: ROOT/box/e.ini
    - sections: [a, empty, never]
sections_none:
  ini.sections_absent:
    - name: ROOT/box/e.ini
