plain:
  cmd.script:
    - name: salt://script.sh
    - args: a b
by-source:
  cmd.script:
    - name: script.sh c 'd e'
    - source: salt://script.sh
    - env:
      - GREETING: hi
status:
  cmd.script:
    - name: salt://script.sh
    - env: {STATUS: 3}
status-good:
  cmd.script:
    - name: salt://script.sh
    - env: {STATUS: 3}
    - success_retcodes: [3]
stdout-good:
  cmd.script:
    - name: salt://loud.sh
    - shell: /bin/bash
    - success_stdout: [loud]
template:
  cmd.script:
    - name: salt://template.sh
    - template: jinja
    - context: {who: me}
    - defaults: {who: you, what: that}
hidden:
  cmd.script:
    - name: salt://script.sh
    - hide_output: True
    - output_loglevel: quiet
cwd:
  cmd.script:
    - name: salt://script.sh
    - cwd: /usr
cwd-not-there:
  cmd.script:
    - name: salt://script.sh
    - cwd: /no/such
not-there:
  cmd.script:
    - name: salt://nosuch.sh
runas-nosuch:
  cmd.script:
    - name: salt://script.sh
    - runas: no-such-user
runas:
  cmd.script:
    - name: salt://script.sh
    - runas: nobody
    - cwd: /
creates:
  cmd.script:
    - name: salt://script.sh
    - creates: /etc/passwd
stateful:
  cmd.script:
    - name: salt://stateful.sh
    - stateful: True
