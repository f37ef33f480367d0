/srv/app:
  file.managed:
    - contents: {{ pillar['version'] | yaml_dquote }}

check:
  cmd.run:
    - name: check-app
    - onchanges: [{file: /srv/app}]
