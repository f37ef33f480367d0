root:
  alias.present:
    - target: other@example.com
postmaster:
  alias.present:
    - target: root
several:
  alias.present:
    - target: [a@example.com, b@example.com]
old:
  alias.absent
nosuch:
  alias.absent
no-target:
  alias.present:
    - target: ''
missing-target:
  alias.present
