{% set d = {} %}{% set d.x = 1 %}
