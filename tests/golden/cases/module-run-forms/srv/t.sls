kwargs:
  module.run:
    - name: test.kwarg
    - kwargs: {a: 1}
fun_list:
  module.run:
    - file.touch:
      - name: ROOT/box/touched
args_only:
  module.run:
    - test.arg: [1, 2]
named:
  module.run:
    - name: file.write
    - path: ROOT/box/w
    - args: ROOT/box/w2
    - m_args: [x]
many:
  module.run:
    - test.echo: [a]
    - file.file_exists: [/nosuch]
returned_false:
  module.run:
    - name: test.false
onch:
  module.run:
    - name: test.echo
    - text: changed
    - onchanges:
      - module: fun_list
