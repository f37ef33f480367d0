{% for a, b in ['x'] %}{% endfor %}
