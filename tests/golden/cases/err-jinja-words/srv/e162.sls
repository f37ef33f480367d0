{% for x %}{% endfor %}
