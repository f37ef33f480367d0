{% if pillar['nokey'] %}
{% endif %}
