user:
  acl.present:
    - name: ROOT/box/file
    - acl_type: user
    - acl_name: joe
    - perms: r
forced:
  acl.present:
    - name: ROOT/box/file
    - acl_type: group
    - acl_name: www
    - perms: rw
    - force: True
