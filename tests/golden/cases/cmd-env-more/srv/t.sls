nums:
  cmd.run:
    - name: echo $N $T $E.
    - env:
      - N: 5
      - T: true
      - E: ''
path:
  cmd.run:
    - name: mycmd
    - prepend_path: ROOT/box/bin
bash:
  cmd.run:
    - name: 'echo ${BASH_VERSION:+bash}'
    - shell: /bin/bash
multi_line:
  cmd.run:
    - name: |
        set -e
        for i in 1 2; do
          echo "line $i"
        done
quotes:
  cmd.run:
    - name: 'echo "double \"inner\"" ''single'''
pipe_fail:
  cmd.run:
    - name: 'false | true'
stderr_only:
  cmd.run:
    - name: echo warn >&2
notfound:
  cmd.run:
    - name: nosuchcommand_golden
retcodes:
  cmd.run:
    - name: exit 7
    - success_retcodes: [7, 8]
success_stdout:
  cmd.run:
    - name: echo fine; exit 1
    - success_stdout: [fine]
success_stderr:
  cmd.run:
    - name: echo bad >&2; exit 1
    - success_stderr: [bad]
umask:
  cmd.run:
    - name: umask
    - umask: '077'
bg:
  cmd.run:
    - name: 'true'
    - bg: True
