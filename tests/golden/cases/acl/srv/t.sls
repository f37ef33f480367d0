user:
  acl.present:
    - name: ROOT/box/file
    - acl_type: user
    - acl_name: joe
    - perms: rwx
group:
  acl.present:
    - name: ROOT/box/file
    - acl_type: group
    - acl_name: www
    - perms: r
default:
  acl.present:
    - name: ROOT/box/tree
    - acl_type: default:user
    - acl_name: joe
    - perms: rw
below:
  acl.present:
    - name: ROOT/box/tree
    - acl_type: user
    - acl_name: ann
    - perms: rX
    - recurse: True
list:
  acl.list_present:
    - name: ROOT/box/tree/a
    - acl_type: user
    - acl_names: [one, two]
    - perms: rw
owner:
  acl.present:
    - name: ROOT/box/file
    - acl_type: group
    - perms: r
no_file:
  acl.present:
    - name: ROOT/box/never
    - acl_type: user
    - acl_name: joe
    - perms: rwx
no_type:
  acl.present:
    - name: ROOT/box/file
    - acl_type: friend
    - acl_name: joe
    - perms: rwx
