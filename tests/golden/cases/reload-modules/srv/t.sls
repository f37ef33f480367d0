a:
  file.managed:
    - name: ROOT/box/x.py
    - contents: '# python'
b:
  test.succeed_with_changes:
    - reload_modules: True
    - reload_pillar: True
    - reload_grains: True
c:
  test.nop:
    - name: {{ salt['test.ping']() }}
