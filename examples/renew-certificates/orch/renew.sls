renew:
  salt.function:
    - name: cmd.run
    - tgt: {{ pillar['host'] | yaml_encode }}
    - arg: ['certbot renew --quiet']

reload:
  salt.function:
    - name: cmd.run
    - tgt: {{ pillar['host'] | yaml_encode }}
    - arg: ['systemctl reload nginx']
    - require: [{salt: renew}]
