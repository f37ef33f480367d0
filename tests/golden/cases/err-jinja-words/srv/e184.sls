{% call foo %}{% endcall %}
