user:
  acl.list_absent:
    - name: ROOT/box/tree/a
    - acl_type: user
    - acl_names: [one, two]
never:
  acl.absent:
    - name: ROOT/box/file
    - acl_type: user
    - acl_name: never
no_file:
  acl.absent:
    - name: ROOT/box/never
    - acl_type: user
    - acl_name: joe
no_type:
  acl.list_absent:
    - name: ROOT/box/file
    - acl_type: friend
    - acl_names: [joe]
