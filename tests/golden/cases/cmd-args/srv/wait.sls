changes:
  test.succeed_with_changes: []
quiet:
  test.succeed_without_changes: []
waits:
  cmd.wait:
    - name: echo $A; exit 3
    - env:
      - A: waited
    - shell: /bin/sh
    - hide_output: False
    - success_retcodes: [3]
    - watch: [test: changes]
waits-stateful:
  cmd.wait:
    - name: 'echo; echo changed=yes comment=told'
    - stateful: True
    - watch: [test: changes]
waits-for-nothing:
  cmd.wait:
    - name: echo never
    - watch: [test: quiet]
waits-creates:
  cmd.wait:
    - name: echo never
    - creates: /etc/passwd
    - watch: [test: changes]
waits-bad:
  cmd.wait:
    - name: "false"
    - watch: [test: changes]
script-waits:
  cmd.wait_script:
    - name: salt://template.sh
    - template: jinja
    - context: {who: me, what: that}
    - watch: [test: changes]
script-source:
  cmd.wait_script:
    - name: script.sh x y
    - source: salt://script.sh
    - env: {GREETING: hello}
    - cwd: /
    - watch: [test: changes]
script-stateful:
  cmd.wait_script:
    - name: salt://stateful.sh
    - stateful: True
    - watch: [test: changes]
script-for-nothing:
  cmd.wait_script:
    - name: salt://script.sh
    - watch: [test: quiet]
script-bad:
  cmd.wait_script:
    - name: salt://nosuch.sh
    - watch: [test: changes]
script-status:
  cmd.wait_script:
    - name: salt://script.sh
    - env: {STATUS: 2}
    - success_retcodes: 2
    - watch: [test: changes]
run-watches:
  cmd.run:
    - name: echo watched
    - watch: [test: changes]
