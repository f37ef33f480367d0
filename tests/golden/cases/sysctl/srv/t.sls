new:
  sysctl.present:
    - name: vm.dirty_background_ratio
    - value: 1
    - config: ROOT/box/conf
blanks:
  sysctl.present:
    - name: kernel.sem
    - value: 4096 131072 6291456
    - config: ROOT/box/conf
changed:
  sysctl.present:
    - name: vm.swappiness
    - value: 10
    - config: ROOT/box/conf
same:
  sysctl.present:
    - name: vm.dirty_ratio
    - value: 10
    - config: ROOT/box/conf
empty:
  sysctl.present:
    - name: kernel.domainname
    - value: example
    - config: ROOT/box/conf
new_file:
  sysctl.present:
    - name: vm.swappiness
    - value: 10
    - config: ROOT/box/sub/more.conf
never:
  sysctl.present:
    - name: kernel.golden_never
    - value: 1
    - config: ROOT/box/sub/bad.conf
invalid:
  sysctl.present:
    - name: vm.dirty_background_ratio
    - value: bad
    - config: ROOT/box/sub/bad.conf
