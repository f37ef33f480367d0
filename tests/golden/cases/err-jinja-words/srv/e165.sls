{% macro %}{% endmacro %}
