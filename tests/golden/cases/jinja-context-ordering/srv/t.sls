{% if 'a' < 5 %}{% endif %}
