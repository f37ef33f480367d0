{% for k, v in pillar.num.items() %}{% endfor %}
