{% set x == 5 %}
