gone:
  mount.unmounted:
    - name: ROOT/box/point
    - device: ROOT/box/there
    - persist: True
    - config: ROOT/box/fstab
absent_opts:
  mount.fstab_absent:
    - name: /dev/sdn1
    - fs_file: /n
    - mount_by: device
    - config: ROOT/box/fstab
absent_swap:
  mount.fstab_absent:
    - name: /dev/sdc1
    - fs_file: none
    - config: ROOT/box/fstab
no_file:
  mount.fstab_absent:
    - name: /dev/sdc1
    - fs_file: none
    - config: ROOT/box/nofile
