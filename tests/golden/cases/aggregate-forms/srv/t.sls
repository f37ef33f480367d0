{% macro write(name, text='default', mode='0644') %}
ROOT/box/{{ name }}:
  file.managed:
    - contents: {{ text | yaml_dquote }}
    - mode: '{{ mode }}'
{% endmacro %}
{{ write('one') }}
{{ write('two', 'with "quotes" and: colons', mode='0600') }}
{% for name, conf in {'three': {'text': "multi\nline"}, 'four': {'text': '{{ braces }}'}}.items() %}
{{ write(name, **conf) }}
{% endfor %}
{% set users = [{'n': 'ann', 'g': ['a', 'b']}, {'n': 'bob'}] %}
users:
  file.managed:
    - name: ROOT/box/users
    - contents: |
        {%- for u in users %}
        {{ u.n }}:{{ u.get('g', []) | join(',') }}{% if not loop.last %},{% endif %}
        {%- endfor %}
        last
yamlfilter:
  file.managed:
    - name: ROOT/box/y
    - contents: |
        {{ {'a': [1, {'b': 'c'}], 'z': 'long text ' * 12} | yaml(False) | indent(8) }}
