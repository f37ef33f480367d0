/srv/release:
  file.managed:
    - contents: {{ pillar['version'] | yaml_dquote }}
