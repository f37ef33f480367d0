#!yaml
a:
  test.nop:
    - name: "{{ untouched }}"
