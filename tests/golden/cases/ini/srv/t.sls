same:
  ini.options_present:
    - name: ROOT/box/a.ini
    - sections:
        top: 1
        first: {key: value}
changed:
  ini.options_present:
    - name: ROOT/box/a.ini
    - sections:
        top: 2
        'off': 'no'
        first: {key: other, hidden: 5, new: true, nothing: null}
        second: {key: 3}
        third: {one: 1, two: dos}
no_spaces:
  ini.options_present:
    - name: ROOT/box/b.ini
    - no_spaces: True
    - sections:
        first: {key: tight}
        third: {one: 1}
strict:
  ini.options_present:
    - name: ROOT/box/strict.ini
    - strict: True
    - sections:
        top: 1
        first: {key: value, list: "one\n    two\n    three"}
        second: {indented: 'yes', key: 2, strange: x}
colon:
  ini.options_present:
    - name: ROOT/box/colon.ini
    - separator: ':'
    - sections:
        a: 2
        s: {b: 3, c: 4}
new_file:
  ini.options_present:
    - name: ROOT/box/new.ini
    - sections:
        x: y
        s: {b: 3}
nothing:
  ini.options_present:
    - name: ROOT/box/d.ini
