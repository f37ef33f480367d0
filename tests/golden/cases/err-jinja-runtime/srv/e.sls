{% for x in none %}{% endfor %}
