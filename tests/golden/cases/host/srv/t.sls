there:
  host.present:
    - name: one
    - ip: 10.0.0.1
new_name:
  host.present:
    - name: eins
    - ip: 10.0.0.1
new_address:
  host.present:
    - name: three
    - ip: [10.0.0.3]
with_comment:
  host.present:
    - name: four
    - ip: 10.0.0.4
    - comment: fourth
comment_changed:
  host.present:
    - name: two
    - ip: 10.0.0.2
    - comment: the second
comment_added:
  host.present:
    - name: uno
    - ip: 10.0.0.1
    - comment: first
elsewhere:
  host.present:
    - name: dos
    - ip: 10.0.0.5
cleaned:
  host.present:
    - name: zwei
    - ip: 10.0.0.6
    - clean: True
gone:
  host.absent:
    - name: box
    - ip: 127.0.0.1
gone_several:
  host.absent:
    - name: one
    - ip: [10.0.0.1, 10.0.0.9]
never:
  host.absent:
    - name: never
    - ip: 10.0.0.1
only:
  host.only:
    - name: 10.0.0.2
    - hostnames: [a, b]
only_one:
  host.only:
    - name: 10.0.0.7
    - hostnames: seven
only_none:
  host.only:
    - name: 10.0.0.3
    - hostnames: []
