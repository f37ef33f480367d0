present_same:
  mount.fstab_present:
    - name: /dev/sdb1
    - fs_file: /data
    - fs_vfstype: ext4
    - fs_mntops: noatime,defaults
    - fs_freq: 0
    - fs_passno: 2
    - config: ROOT/box/fstab
present_changed:
  mount.fstab_present:
    - name: tmpfs
    - fs_file: /tmp/
    - fs_vfstype: tmpfs
    - fs_mntops: [size=2g, noexec]
    - config: ROOT/box/fstab
present_kept:
  mount.fstab_present:
    - name: /dev/sdb1
    - fs_file: /elsewhere
    - fs_vfstype: ext4
    - not_change: True
    - config: ROOT/box/fstab
present_new:
  mount.fstab_present:
    - name: /dev/sdd1
    - fs_file: /new
    - fs_vfstype: xfs
    - config: ROOT/box/fstab
present_new_unmounted:
  mount.fstab_present:
    - name: server:/export
    - fs_file: /nfs
    - fs_vfstype: nfs
    - mount: False
    - config: ROOT/box/fstab
present_bad:
  mount.fstab_present:
    - name: /dev/bad
    - fs_file: /bad
    - fs_vfstype: xfs
    - config: ROOT/box/fstab
present_matched:
  mount.fstab_present:
    - name: /dev/sdz1
    - fs_file: /data
    - fs_vfstype: ext4
    - match_on: [name]
    - config: ROOT/box/fstab2
by_label:
  mount.fstab_present:
    - name: /dev/golden_never
    - fs_file: /data
    - fs_vfstype: ext4
    - mount_by: label
    - config: ROOT/box/fstab2
no_file:
  mount.fstab_present:
    - name: /dev/sdz1
    - fs_file: /data
    - fs_vfstype: ext4
    - config: ROOT/box/never
absent:
  mount.fstab_absent:
    - name: UUID=abc-def
    - fs_file: /
    - config: ROOT/box/fstab2
absent_never:
  mount.fstab_absent:
    - name: /dev/sdq
    - fs_file: /never
    - config: ROOT/box/fstab2
