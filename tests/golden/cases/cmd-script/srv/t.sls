plain:
  cmd.script:
    - source: salt://s.sh
salt://s.sh:
  cmd.script:
    - cwd: ROOT/box
    - args: one "two three"
inname:
  cmd.script:
    - name: s.sh a b
    - source: salt://s.sh
    - env: [V: set]
    - cwd: ROOT/box
fails:
  cmd.script:
    - name: salt://s.sh
    - env: {R: 3}
template:
  cmd.script:
    - source: salt://j.sh
    - template: jinja
    - context: {x: ctx}
missing:
  cmd.script:
    - source: salt://nosuch.sh
local:
  cmd.script:
    - source: ROOT/srv/s.sh
    - cwd: /
stateful:
  cmd.script:
    - source: salt://st.sh
    - stateful: True
creates:
  cmd.script:
    - source: salt://s.sh
    - creates: ROOT/srv/s.sh
