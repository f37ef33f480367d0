{% extends 'base.jinja' %}
{% block body %}
body:
  test.nop:
    - name: {{ grains.id }}
{% endblock %}
