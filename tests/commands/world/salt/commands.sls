ok:
  cmd.run:
    - name: echo out; echo err >&2
bad:
  cmd.run:
    - name: echo out; exit 3
made:
  cmd.run:
    - name: 'true'
    - creates: /mnt/etc/master
