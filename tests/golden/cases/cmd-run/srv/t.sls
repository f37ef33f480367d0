echo hello:
  cmd.run
named:
  cmd.run:
    - name: echo out; echo err >&2; exit 3
pwd:
  cmd.run:
    - cwd: ROOT/box
env:
  cmd.run:
    - name: echo $A $B
    - env:
      - A: one
      - B: 'two three'
envmap:
  cmd.run:
    - name: echo $A
    - env: {A: 5}
shell:
  cmd.run:
    - name: echo "$0" | sed s/x/y/
    - shell: /bin/sh
multi:
  cmd.run:
    - name: |
        echo one
        echo two | tr a-z A-Z
        false
ok3:
  cmd.run:
    - name: exit 3
    - success_retcodes: [3]
nocwd:
  cmd.run:
    - name: 'true'
    - cwd: ROOT/nosuch
nouser:
  cmd.run:
    - name: 'true'
    - runas: nosuchuser
stdin:
  cmd.run:
    - name: cat
    - stdin: given
several:
  cmd.run:
    - names:
      - echo 1
      - echo 2
hidden:
  cmd.run:
    - name: echo secret
    - hide_output: True
ignored:
  cmd.run:
    - name: exit 4
    - ignore_retcode: True
slow:
  cmd.run:
    - name: sleep 5
    - timeout: 1
raw:
  cmd.run:
    - name: printf 'a\n\n'
outlog:
  cmd.run:
    - name: echo x
    - output_loglevel: quiet
badenv:
  cmd.run:
    - name: 'true'
    - env: x
