env-list:
  cmd.run:
    - name: echo $A $B
    - env:
      - A: one
      - B: two
env-map:
  cmd.run:
    - name: echo $A $B
    - env: {A: one, B: 2}
shell:
  cmd.run:
    - name: echo $0
    - shell: /bin/bash
use-vt:
  cmd.run:
    - name: echo vt
    - use_vt: False
timeout:
  cmd.run:
    - name: sleep 5
    - timeout: 0.2
ignore-timeout:
  cmd.run:
    - name: sleep 5
    - timeout: 0.2
    - ignore_timeout: True
hidden:
  cmd.run:
    - name: echo secret; echo error >&2
    - hide_output: True
quiet:
  cmd.run:
    - name: echo quiet
    - output_loglevel: quiet
codes:
  cmd.run:
    - name: exit 3
    - success_retcodes: [3, 4]
code:
  cmd.run:
    - name: exit 3
    - success_retcodes: 3
stdout:
  cmd.run:
    - name: echo fine; exit 5
    - success_stdout: [fine]
stderr:
  cmd.run:
    - name: echo fine >&2; exit 5
    - success_stderr: fine
path:
  cmd.run:
    - name: echo $PATH | cut -d':' -f1
    - prepend_path: /opt/own/bin
umask:
  cmd.run:
    - name: umask
    - umask: "077"
cwd:
  cmd.run:
    - name: pwd
    - cwd: /usr
cwd-not-there:
  cmd.run:
    - name: pwd
    - cwd: /no/such/folder
runas-nobody:
  cmd.run:
    - name: id -un
    - runas: nobody
    - cwd: /
runas-nosuch:
  cmd.run:
    - name: id -un
    - runas: no-such-user
root-nosuch:
  cmd.run:
    - name: pwd
    - root: /no/such/root
bg:
  cmd.run:
    - name: "true"
    - bg: True
clean:
  cmd.run:
    - name: "echo x$HOME"
    - clean_env: True
stdin:
  cmd.run:
    - name: cat
    - stdin: "some text"
stateful:
  cmd.run:
    - name: 'echo; echo changed=yes comment="all new" what=thing'
    - stateful: True
stateful-test:
  cmd.run:
    - name: 'echo changed=yes'
    - stateful:
      - test_name: 'echo; echo "{\"changed\": true, \"comment\": \"would\"}"'
stateful-bad:
  cmd.run:
    - name: echo nothing
    - stateful: True
unknown:
  cmd.run:
    - name: echo unknown
    - nosuch_argument: 1
rstrip:
  cmd.run:
    - name: printf 'a\n\n'
    - rstrip: False
raise:
  cmd.run:
    - name: "false"
    - raise_err: True
names:
  cmd.run:
    - names:
      - echo a
      - echo b
env-bad:
  cmd.run:
    - name: echo
    - env: 5
creates:
  cmd.run:
    - name: echo
    - creates: [/etc/passwd, /no/such/file]
creates-all:
  cmd.run:
    - name: echo
    - creates: [/etc/passwd, /]
