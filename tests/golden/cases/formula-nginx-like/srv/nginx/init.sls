{% from 'nginx/map.jinja' import nginx, sls_block with context %}
include:
  - nginx.config
nginx_pkg:
  test.succeed_with_changes:
    - name: {{ nginx.lookup.package }}
    {{ sls_block(nginx.opts) | indent(4) }}
