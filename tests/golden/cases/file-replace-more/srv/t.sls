named:
  file.replace:
    - name: ROOT/box/a
    - pattern: '(?P<word>\w+) (?P<num>\d)'
    - repl: '\g<num> \g<word>'
dotall:
  file.replace:
    - name: ROOT/box/b
    - pattern: 'x=1.x=2'
    - repl: 'joined'
    - flags: [DOTALL]
special:
  file.replace:
    - name: ROOT/box/c
    - pattern: '/old/dir'
    - repl: '/new/dir$1'
badre:
  file.replace:
    - name: ROOT/box/c
    - pattern: '(unclosed'
    - repl: x
lookahead:
  file.replace:
    - name: ROOT/box/a
    - pattern: '1(?= one)'
    - repl: 'ONE'
number:
  file.replace:
    - name: ROOT/box/a
    - pattern: '3'
    - repl: 33
multiline_append:
  file.replace:
    - name: ROOT/box/b
    - pattern: '^nothere$'
    - repl: |
        first
        second
    - append_if_not_found: True
same:
  file.replace:
    - name: ROOT/box/b
    - pattern: 'joined'
    - repl: 'joined'
