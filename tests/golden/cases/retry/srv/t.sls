a:
  test.fail_without_changes:
    - retry: {attempts: 3, interval: 0}
b:
  test.succeed_with_changes:
    - retry: {attempts: 2, until: False, interval: 0}
c:
  cmd.run:
    - name: test -e c2 || { test -e c1 && touch c2 || touch c1; false; }
    - cwd: ROOT/box
    - retry:
        attempts: 5
        interval: 0
after:
  test.nop
