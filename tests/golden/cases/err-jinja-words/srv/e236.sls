{% for x in [1] %}{{ loop.foo }}{% endfor %}
