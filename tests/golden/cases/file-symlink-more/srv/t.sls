owner:
  file.symlink:
    - name: ROOT/box/owned
    - target: /etc/hostname
    - user: nobody
    - group: nogroup
todir:
  file.symlink:
    - name: ROOT/box/todir
    - target: ROOT/box/d
broken:
  file.symlink:
    - name: ROOT/box/broken
    - target: elsewhere
nested:
  file.symlink:
    - name: ROOT/box/x/y/link
    - target: z
    - makedirs: True
    - dir_mode: '0700'
nouser:
  file.symlink:
    - name: ROOT/box/nu
    - target: z
    - user: nosuchuser
