/srv/shop/VERSION:
  file.managed:
    - contents: {{ pillar['version'] | yaml_dquote }}
    - makedirs: True
