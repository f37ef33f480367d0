f:
  file.managed:
    - name: ROOT/box/f
    - contents_pillar: secret
    - show_changes: False
c:
  cmd.run:
    - name: echo {{ pillar.secret }}
    - no_log: True
e:
  cmd.run:
    - name: echo $S
    - env: [S: {{ pillar.secret }}]
    - hide_output: True
