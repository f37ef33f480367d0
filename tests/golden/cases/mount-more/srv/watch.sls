chg: test.succeed_with_changes
proc:
  mount.mounted:
    - name: /proc
    - device: proc
    - fstype: proc
    - opts: [nosuid, nodev, noexec]
    - config: ROOT/box/fstab
    - persist: False
    - watch:
      - test: chg
unmounted:
  mount.unmounted:
    - name: ROOT/box/never
    - watch:
      - test: chg
