{%- set used_sudo = [] %}
{%- for group, setting in salt['pillar.get']('groups', {}).items() %}
{%- if setting.absent is defined and setting.absent or setting.get('state', "present") == 'absent' %}
users_group_absent_{{ group }}:
  group.absent:
    - name: {{ group }}
{%- else %}
users_group_present_{{ group }}:
  group.present:
    - name: {{ group }}
    - gid: {{ setting.get('gid', "null") }}
    - system: {{ setting.get('system', "False") }}
{%- endif %}
{%- endfor %}
{%- for name, user in pillar.get('users', {}).items() if user.absent is not defined or not user.absent %}
{%- set current = salt.user.info(name) -%}
{%- if user == None %}{%- set user = {} %}{%- endif %}
{%- set home = user.get('home', current.get('home', "/home/%s" % name)) -%}
{%- set prime_group = user.get('prime_group', {}).get('name', name) %}
{%- if 'sudouser' in user and user['sudouser'] %}{%- do used_sudo.append(1) %}{%- endif %}
users_{{ name }}_user:
  test.nop:
    - name: {{ name }}
    - home: {{ home }}
    - group: {{ prime_group }}
    - groups:
      - {{ prime_group }}
      {%- for group in user.get('groups', []) %}
      - {{ group }}
      {%- endfor %}
    {%- if 'uid' in user %}
    - uid: {{ user['uid'] }}
    {%- endif %}
    - keys: {{ user.get('ssh_auth', []) | length }}
{%- for key in user.get('ssh_auth', []) %}
{{ name }}_key_{{ loop.index0 }}:
  test.nop:
    - name: {{ key | yaml_dquote }}
{%- endfor %}
{%- endfor %}
{%- if used_sudo %}
sudo: {test.nop: []}
{%- endif %}
