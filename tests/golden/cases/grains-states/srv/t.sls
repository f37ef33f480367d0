exists:
  grains.exists:
    - name: tree:branch
exists_not:
  grains.exists:
    - name: tree:never
new:
  grains.present:
    - name: fresh
    - value: air
same:
  grains.present:
    - name: word
    - value: cheese
changed:
  grains.present:
    - name: word
    - value: 5
nested:
  grains.present:
    - name: tree,branch,leaf
    - value: brown
    - delimiter: ','
nested_new:
  grains.present:
    - name: a:b:c
    - value: [1, two]
nested_in_word:
  grains.present:
    - name: tree3:word:leaf
    - value: x
nested_below_itself:
  grains.present:
    - name: tree4:word:stem
    - value: x
complex:
  grains.present:
    - name: roles
    - value: x
complex_value:
  grains.present:
    - name: fresh
    - value: [a, b]
complex_forced:
  grains.present:
    - name: fresh
    - value: [a, b]
    - force: True
in_list:
  grains.present:
    - name: tree2:list:a
    - value: 1
list_new:
  grains.list_present:
    - name: newlist
    - value: one
list_several:
  grains.list_present:
    - name: more
    - value: [web, mail, ntp]
list_same:
  grains.list_present:
    - name: more
    - value: db
list_all_same:
  grains.list_present:
    - name: roles
    - value: [db, web]
list_nested:
  grains.list_present:
    - name: tree5:list
    - value: c
list_none:
  grains.list_present:
    - name: word
    - value: c
append:
  grains.append:
    - name: roles
    - value: dns
append_same:
  grains.append:
    - name: roles
    - value: web
append_word:
  grains.append:
    - name: word
    - value: web
append_convert:
  grains.append:
    - name: word
    - value: web
    - convert: True
append_nothing:
  grains.append:
    - name: nothing
    - value: web
    - convert: True
append_never:
  grains.append:
    - name: never
    - value: web
