{% for name, args in [('order', 'ignore_ordering: True'), ('white', 'ignore_whitespace: True'), ('comment', "ignore_comment_characters: '#'"), ('other', "ignore_comment_characters: ['#', ';']")] %}
{{ name }}:
  file.managed:
    - name: ROOT/box/{{ name }}
    - contents: |
        a
        b
    - mode: '0640'
    - {{ args }}
  test.configurable_test_state:
    - name: after-{{ name }}
    - changes: True
    - result: True
    - onchanges:
      - file: {{ name }}
{% endfor %}
