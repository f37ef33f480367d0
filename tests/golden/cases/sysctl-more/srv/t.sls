number:
  sysctl.present:
    - name: vm.swappiness
    - value: 30
    - config: ROOT/box/numbers
text:
  sysctl.present:
    - name: vm.dirty_ratio
    - value: '20'
    - config: ROOT/box/numbers
bool:
  sysctl.present:
    - name: vm.dirty_background_ratio
    - value: True
    - config: ROOT/box/numbers
tabs:
  sysctl.present:
    - name: kernel.sem
    - value: "4096\t131072\t6291456"
    - config: ROOT/box/numbers
names:
  sysctl.present:
    - names:
      - vm.swappiness:
        - value: 40
      - vm.dirty_ratio:
        - value: 50
    - config: ROOT/box/names
equals:
  sysctl.present:
    - name: kernel.domainname
    - value: a=b
    - config: ROOT/box/equals
slashes:
  sysctl.present:
    - name: vm/swappiness
    - value: 31
    - config: ROOT/box/slashes
