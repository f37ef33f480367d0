{% for k, v in pillar.lst %}{% endfor %}
