{% set d = [] %}{% do d.remove(1) %}
