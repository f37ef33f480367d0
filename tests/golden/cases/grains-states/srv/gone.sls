list:
  grains.list_absent:
    - name: roles
    - value: web
list_several:
  grains.list_absent:
    - name: more
    - value: [web, db, never]
list_never:
  grains.list_absent:
    - name: never
    - value: x
list_none:
  grains.list_absent:
    - name: tree7:word
    - value: x
nested:
  grains.list_absent:
    - name: tree5:list
    - value: b
value:
  grains.absent:
    - name: fresh2
never:
  grains.absent:
    - name: never
nothing:
  grains.absent:
    - name: nothing
complex:
  grains.absent:
    - name: roles
complex_forced:
  grains.absent:
    - name: roles
    - force: True
destroyed:
  grains.absent:
    - name: word2
    - destructive: True
nested_destroyed:
  grains.absent:
    - name: tree6:branch:leaf
    - destructive: True
nested_value:
  grains.absent:
    - name: tree7:word
