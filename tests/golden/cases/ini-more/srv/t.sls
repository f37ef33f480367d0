numbers:
  ini.options_present:
    - name: ROOT/box/e.ini
    - sections:
        a: {x: 1, f: 1.5, t: true, s: '007'}
spaces:
  ini.options_present:
    - name: ROOT/box/e.ini
    - sections:
        b c: {y: plain, 'k k': v v}
flags:
  ini.options_present:
    - name: ROOT/box/e.ini
    - sections:
        mysqld: {key: filled, 'new': ''}
same:
  ini.options_present:
    - name: ROOT/box/e.ini
    - sections:
        a: {x: 1}
empty_filled:
  ini.options_present:
    - name: ROOT/box/e.ini
    - sections:
        empty: {unicode: grüße}
list:
  ini.options_present:
    - name: ROOT/box/e.ini
    - sections:
        a: {l: [1, two]}
section_none:
  ini.options_present:
    - name: ROOT/box/e.ini
    - sections:
        fresh: {}
crlf:
  ini.options_present:
    - name: ROOT/box/crlf.ini
    - sections:
        one: {a: 2, b: 3}
folder:
  ini.options_present:
    - name: ROOT/box/no/such/dir.ini
    - sections:
        s: {a: b}
