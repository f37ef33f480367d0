loaded:
  kmod.present:
    - name: loop
loaded_several:
  kmod.present:
    - name: several
    - mods: [loop]
unavailable:
  kmod.present:
    - name: golden_never
partly:
  kmod.present:
    - name: partly
    - mods: [loop, golden_never]
gone:
  kmod.absent:
    - name: bridge
gone_list:
  kmod.absent:
    - name: several
    - mods: [stp]
busy:
  kmod.absent:
    - name: busy
never:
  kmod.absent:
    - name: golden_never
never_several:
  kmod.absent:
    - name: never
    - mods: [golden_a, golden_b]
