number:
  grains.present:
    - name: number
    - value: 5
bool:
  grains.present:
    - name: flag
    - value: True
empty_list:
  grains.present:
    - name: none_yet
    - value: []
dict:
  grains.present:
    - name: conf
    - value: [1, two]
    - force: True
dict_unforced:
  grains.present:
    - name: tree
    - value: {branch: x}
nulled:
  grains.present:
    - name: word2
    - value: null
list_of_numbers:
  grains.list_present:
    - name: ports
    - value: [80, 443]
list_deep:
  grains.list_present:
    - name: deep:er:list
    - value: x
absent_deep:
  grains.absent:
    - name: tree:branch
absent_deep_forced:
  grains.absent:
    - name: tree2:list
    - force: True
    - destructive: True
absent_delim:
  grains.absent:
    - name: tree3/word
    - delimiter: /
list_absent_deep:
  grains.list_absent:
    - name: tree5/list
    - value: [a, z]
    - delimiter: /
append_map:
  grains.append:
    - name: tree
    - value: z
    - convert: True
exists_delim:
  grains.exists:
    - name: tree6/branch
    - delimiter: /
names:
  grains.present:
    - value: same
    - names: [n1, n2]
