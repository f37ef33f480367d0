{% load_yaml as y %}
a: [1, yes, 0644]
{% for i in range(2) %}
k{{ i }}: {{ i * 2 }}
{% endfor %}
{% endload %}
{% load_json as j %}{"x": [1, {"y": null}]}{% endload %}
{% load_text as t %}text {{ y.a }}{% endload %}
{% set z = namespace(l=[]) %}
{% for k, v in y.items() %}{% do z.l.append(k ~ '=' ~ v) %}{% endfor %}
{% profile as 'x' %}
{% set p = 1 %}
{% endprofile %}
a:
  test.nop:
    - y: {{ y }}
    - j: {{ j }}
    - t: {{ t }}
    - l: {{ z.l | yaml }}
    - d: {{ {'a': 'multi\nline', 'b': [none, true]} }}
    - s: {{ salt['test.echo']({'k': [1]}) }}
    - nested: {{ salt['slsutil.merge']({'a': {'b': 1, 'l': [1]}}, {'a': {'c': 2, 'l': [2]}}) | json }}
    - merged: {{ salt['slsutil.merge']({'l': [1]}, {'l': [2]}, merge_lists=True) | json }}
    - filter: {{ salt['grains.filter_by']({'Debian': {'x': 1}, 'default': {'x': 2}}, merge={'y': 3}) | json }}
    - config: {{ salt['config.get']('nosuch', 'dflt') }} {{ salt['config.get']('id') }} {{ salt.config.get('file_client') }}
    - grains: {{ salt['grains.get']('nosuch:deep', 'dflt') }} {{ salt['grains.get']('id') }} {{ grains.get('id') }} {{ grains['id'] }}
    - has: {{ 'test.ping' in salt }} {{ 'no.such' in salt }} {{ salt['file.file_exists']('/nosuch') }} {{ salt['file.directory_exists']('/') }}
    - cmd: "{{ salt['cmd.run']('echo a | cat') }} {{ salt['cmd.shell']('echo a | cat') }} {{ salt['cmd.run']('echo $HOME', python_shell=True) }}"
    - ret: {{ salt['cmd.retcode']('false') }}
    - dirname: {{ salt['file.dirname']('/a/b/c') }} {{ salt['file.basename']('/a/b/c') }} {{ salt['file.join']('a', 'b') }}
    - env: {{ saltenv }} {{ opts.id }} {{ opts['file_client'] }}
    - odict: {{ odict([('a', 1)]) }}
    - ser: {{ salt['slsutil.serialize']('json', {'a': [1]}) }}
    - defmerge: {{ salt['defaults.merge']({'a': {'b': 1}}, {'a': {'c': 2}}) }}
