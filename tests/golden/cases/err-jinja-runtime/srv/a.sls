{% set x = 'a' + 1 %}
