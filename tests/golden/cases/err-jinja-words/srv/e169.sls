{% from 'a' %}
