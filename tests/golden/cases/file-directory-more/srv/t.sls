ROOT/box/trailing/:
  file.directory
ROOT/box/both:
  file.directory:
    - dir_mode: '0750'
    - file_mode: '0640'
ROOT/box/user:
  file.directory:
    - user: nobody
    - group: nogroup
    - mode: '0700'
ROOT/box/m/a/b:
  file.directory:
    - makedirs: True
    - user: nobody
