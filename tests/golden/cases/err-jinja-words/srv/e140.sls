{% if true %}{% endfor %}
