ROOT/box/out:
  file.managed:
    - source: salt://json.jinja
    - template: jinja
    - context:
        conf:
          list: [one, two]
          text: |
            multi
            line
          nested: {deep: [1, {x: y}]}
ROOT/box/plain:
  file.managed:
    - contents: |
        {{ '{% if true %}' }}kept{{ '{% endif %}' }}
        {% raw %}{{ raw }}{% endraw %}
ROOT/box/eol:
  file.managed:
    - source: salt://noeol.jinja
    - template: jinja
