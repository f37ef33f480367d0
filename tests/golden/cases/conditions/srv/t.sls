{% for id, cond in [
  ('o1', 'onlyif: "true"'), ('o2', 'onlyif: "false"'), ('o3', 'onlyif: ["true", "false"]'), ('o4', 'onlyif: []'),
  ('u1', 'unless: "true"'), ('u2', 'unless: "false"'), ('u3', 'unless: ["true", "false"]'), ('u4', 'unless: ["true", "true"]'),
  ('c1', 'creates: ROOT/srv/t.sls'), ('c2', 'creates: [ROOT/srv/t.sls, ROOT/no]'), ('c3', 'creates: [ROOT/srv/t.sls]'), ('c4', 'creates: ROOT/no'),
  ('f1', 'onlyif: [{fun: test.true}]'), ('f2', 'onlyif: [{fun: test.false}]'), ('f3', 'unless: [{fun: file.file_exists, path: ROOT/srv/t.sls}]'),
  ('f4', 'onlyif: [{fun: test.echo, args: [""]}]'), ('f5', 'onlyif: [{fun: pillar.get, key: "a:b"}]'), ('f6', 'onlyif: [{nofun: x}]'),
  ('f7', 'onlyif: [{fun: test.kwarg, a: 0, get_return: a}]'), ('f8', 'onlyif: [{fun: no.such}]'), ('f9', 'onlyif: [{fun: cmd.retcode, cmd: "false"}]'),
  ('k1', 'check_cmd: ["true"]'), ('k2', 'check_cmd: ["false"]'), ('k3', 'check_cmd: ["true", "false"]'),
] %}
{{ id }}:
  test.succeed_with_changes:
    - {{ cond }}
{{ id }}_cmd:
  cmd.run:
    - name: echo {{ id }}
    - {{ cond }}
{% endfor %}
both:
  test.succeed_with_changes:
    - onlyif: 'true'
    - unless: 'false'
both2:
  test.succeed_with_changes:
    - onlyif: 'false'
    - unless: 'true'
