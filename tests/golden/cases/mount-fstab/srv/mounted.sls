proc:
  mount.mounted:
    - name: /proc
    - device: proc
    - fstype: proc
    - config: ROOT/box/fstab2
new:
  mount.mounted:
    - name: ROOT/box/there
    - device: /dev/golden1
    - fstype: ext4
    - opts: [noatime, nodev]
    - dump: 1
    - pass_num: 2
    - config: ROOT/box/fstab2
made:
  mount.mounted:
    - name: ROOT/box/made
    - device: /dev/golden2
    - fstype: ext4
    - mkmnt: True
    - persist: False
    - config: ROOT/box/fstab2
missing:
  mount.mounted:
    - name: ROOT/box/missing
    - device: /dev/golden3
    - fstype: ext4
    - config: ROOT/box/fstab2
refused:
  mount.mounted:
    - name: ROOT/box/point
    - device: /dev/bad
    - fstype: ext4
    - config: ROOT/box/fstab2
only_fstab:
  mount.mounted:
    - name: ROOT/box/point/
    - device: /dev/golden4
    - fstype: ext4
    - mount: False
    - config: ROOT/box/fstab2
only_fstab_made:
  mount.mounted:
    - name: ROOT/box/made2
    - device: /dev/golden5
    - fstype: ext4
    - mount: False
    - mkmnt: True
    - config: ROOT/box/fstab2
only_fstab_missing:
  mount.mounted:
    - name: ROOT/box/missing2
    - device: tmpfs
    - fstype: tmpfs
    - mount: False
    - config: ROOT/box/fstab2
unmounted:
  mount.unmounted:
    - name: ROOT/box/point
unmounted_purged:
  mount.unmounted:
    - name: /data
    - persist: True
    - config: ROOT/box/fstab
unmounted_other:
  mount.unmounted:
    - name: ROOT/box/there
    - device: /dev/other
    - persist: True
    - config: ROOT/box/fstab2
unmounted_never:
  mount.unmounted:
    - name: /never
    - persist: True
    - config: ROOT/box/fstab2
swap:
  mount.swap:
    - name: /dev/golden_swap
    - config: ROOT/box/fstab2
swap_known:
  mount.swap:
    - name: /dev/sdc1
    - config: ROOT/box/fstab2
swap_once:
  mount.swap:
    - name: /dev/golden_swap2
    - persist: False
no_device:
  mount.mounted:
    - name: /x
    - device: ''
    - fstype: ext4
