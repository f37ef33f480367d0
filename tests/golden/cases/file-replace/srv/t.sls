simple:
  file.replace:
    - name: ROOT/box/a
    - pattern: '^key = .*$'
    - repl: key = new
groups:
  file.replace:
    - name: ROOT/box/a
    - pattern: '^# (\w+) = (.*)$'
    - repl: '\1=\2'
    - backup: False
append:
  file.replace:
    - name: ROOT/box/b
    - pattern: '^opt=.*'
    - repl: opt=1
    - append_if_not_found: True
prepend:
  file.replace:
    - name: ROOT/box/c
    - pattern: '^opt=.*'
    - repl: opt=1
    - prepend_if_not_found: True
    - backup: '.orig'
notfound:
  file.replace:
    - name: ROOT/box/d
    - pattern: nomatch
    - repl: y
content:
  file.replace:
    - name: ROOT/box/d
    - pattern: '^zz$'
    - repl: 'unused'
    - not_found_content: zz
    - append_if_not_found: True
count:
  file.replace:
    - name: ROOT/box/e
    - pattern: '[a-c]'
    - repl: 'X'
    - count: 2
    - flags: [IGNORECASE]
missing:
  file.replace:
    - name: ROOT/box/nosuch
    - pattern: a
    - repl: b
missingok:
  file.replace:
    - name: ROOT/box/nosuch
    - pattern: a
    - repl: b
    - ignore_if_missing: True
multi:
  file.replace:
    - name: ROOT/box/a
    - pattern: |
        tail
    - repl: |
        tail
        more
    - show_changes: False
relative:
  file.replace:
    - pattern: a
    - repl: b
