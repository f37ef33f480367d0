local:
  group.present:
    - name: newlocal
    - local: True
local-gone:
  group.absent:
    - name: web
    - local: True
