{% from 'e122.jinja' import nothere %}
{{ nothere }}
