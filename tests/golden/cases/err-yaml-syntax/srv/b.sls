a:
  test.nop:
	- name: b
