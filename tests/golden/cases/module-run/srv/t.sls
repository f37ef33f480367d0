old:
  module.run:
    - name: test.echo
    - text: hi
old2:
  module.run:
    - name: test.arg
    - args: [1, two]
    - kwargs: {k: v}
old3:
  module.run:
    - name: file.file_exists
    - m_name: x
    - path: ROOT/srv/t.sls
new:
  module.run:
    - test.echo:
      - text: hi
new3:
  module.run:
    - test.false:
new4:
  module.run:
    - cmd.run:
      - cmd: echo x
      - cwd: /
unknown:
  module.run:
    - nosuch.fun:
unknown2:
  module.run:
    - name: nosuch.fun
missingarg:
  module.run:
    - name: test.echo
none:
  module.run: []
