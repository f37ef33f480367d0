{% if x = 5 %}{% endif %}
