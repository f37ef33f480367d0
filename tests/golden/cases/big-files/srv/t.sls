ROOT/box/big:
  file.managed:
    - contents: |
        {%- for i in range(300) %}
        line {{ i }}
        {%- endfor %}
