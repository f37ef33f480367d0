ROOT/box/big:
  file.managed:
    - contents: |
        {%- for i in range(300) %}
        line {{ i if i not in [10, 11, 150, 299] else i * 2 }}
        {%- if i == 200 %}
        inserted
        {%- endif %}
        {%- endfor %}
