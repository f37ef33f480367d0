bind:
  mount.mounted:
    - name: ROOT/box/point
    - device: ROOT/box/there
    - fstype: none
    - opts: bind
    - config: ROOT/box/fstab
nfs:
  mount.mounted:
    - name: ROOT/box/there
    - device: server:/export
    - fstype: nfs
    - opts: [ro, vers=4]
    - persist: True
    - config: ROOT/box/fstab
hidden:
  mount.mounted:
    - name: ROOT/box/hid
    - device: //server/share
    - fstype: cifs
    - mkmnt: True
    - opts: 'username=a,password=secret'
    - hidden_opts: [password]
    - config: ROOT/box/fstab
match_device:
  mount.mounted:
    - name: ROOT/box/there2
    - device: /dev/golden8
    - fstype: ext4
    - mkmnt: True
    - match_on: device
    - config: ROOT/box/fstab
proc_remount:
  mount.mounted:
    - name: /proc
    - device: proc
    - fstype: proc
    - opts: [nosuid, nodev, noexec]
    - config: ROOT/box/fstab
numbers:
  mount.mounted:
    - name: ROOT/box/there
    - device: /dev/golden9
    - fstype: xfs
    - dump: '1'
    - pass_num: '2'
    - mount: False
    - config: ROOT/box/fstab
swap_no_config:
  mount.swap:
    - name: /dev/golden_swap9
    - config: ROOT/box/swaps
fstab_mount_by:
  mount.fstab_present:
    - name: /dev/golden_never
    - fs_file: /zzz
    - fs_vfstype: ext4
    - mount_by: uuid
    - config: ROOT/box/fstab
fstab_opts_list:
  mount.fstab_present:
    - name: /dev/sdn1
    - fs_file: /n
    - fs_vfstype: ext4
    - fs_mntops: [noatime, nodev]
    - fs_freq: 1
    - fs_passno: 2
    - mount: False
    - config: ROOT/box/fstab
fstab_root:
  mount.fstab_present:
    - name: LABEL=root
    - fs_file: /
    - fs_vfstype: ext4
    - mount: False
    - config: ROOT/box/fstab2
