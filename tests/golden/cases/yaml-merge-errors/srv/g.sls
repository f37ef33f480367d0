%YAML 1.2
---
x:
  test.nop:
    - name: yes
...
