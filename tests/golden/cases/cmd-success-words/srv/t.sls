words:
  cmd.run:
    - name: cat /none
    - success_stderr: [No such file]
stdout:
  cmd.run:
    - name: echo all is well; exit 3
    - success_stdout: [is well]
'no':
  cmd.run:
    - name: echo all is well; exit 3
    - success_stdout: [is bad]
env:
  cmd.run:
    - name: echo "[$A]"
    - env:
      - A:
