{% for name in ['saltenv', 'pillarenv', 'id', 'minion_id', 'file_client', '__role', 'hash_type', 'test', 'user', 'state_top', 'renderer', 'interface', 'file_buffer_size', 'default_include', 'fileserver_backend', 'master_type'] %}
{{ name }}: {{ opts[name] | tojson }}
{% endfor %}
grains: {{ opts.grains.id }}
{% if opts.pillarenv == 'base' %}
branch: base
{% else %}
branch: other
{% endif %}
