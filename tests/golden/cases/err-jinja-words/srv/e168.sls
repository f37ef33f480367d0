{% import 'a' %}
