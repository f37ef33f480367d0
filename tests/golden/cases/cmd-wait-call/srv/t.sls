a:
  test.succeed_with_changes
wait:
  cmd.wait:
    - name: echo never
watch:
  cmd.wait:
    - name: echo fired
    - cwd: ROOT/box
    - watch:
      - test: a
run:
  cmd.run:
    - name: echo once
    - watch:
      - test: a
onchanges:
  cmd.run:
    - name: echo changed
    - onchanges:
      - test: a
waitscript:
  cmd.wait_script:
    - source: salt://s.sh
    - watch:
      - test: a
module:
  module.wait:
    - name: test.echo
    - text: hello
    - watch:
      - test: a
module2:
  module.wait:
    - name: test.ping
