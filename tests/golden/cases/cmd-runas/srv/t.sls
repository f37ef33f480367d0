who:
  cmd.run:
    - name: id -un; echo $HOME $USER; pwd
    - runas: nobody
    - cwd: /
script:
  cmd.script:
    - source: salt://who.sh
    - runas: nobody
    - cwd: /
cond:
  cmd.run:
    - name: echo ran
    - runas: nobody
    - cwd: /
    - onlyif: test "$(id -un)" = nobody
