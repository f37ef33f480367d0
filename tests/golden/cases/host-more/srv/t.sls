several:
  host.present:
    - name: many
    - ip: [10.0.0.1, 10.1.1.1, '::1']
several_again:
  host.present:
    - name: many
    - ip: [10.0.0.1, 10.1.1.1]
    - clean: True
names:
  host.present:
    - ip: 10.0.0.8
    - names: [eight, acht, huit]
upper:
  host.present:
    - name: UPPER
    - ip: FE80::1
invalid:
  host.present:
    - name: x
    - ip: not-an-address
invalid_v6:
  host.present:
    - name: x
    - ip: 10.0.0.300
comma:
  host.present:
    - name: comma
    - ip: 10.0.0.1,10.0.0.2
comment_kept:
  host.present:
    - name: two
    - ip: 10.0.0.2
comment_several:
  host.present:
    - name: noted
    - ip: [10.2.0.1, 10.0.0.2]
    - comment: a note
absent_names:
  host.absent:
    - names: [uno, never]
    - ip: 10.0.0.1
absent_all:
  host.absent:
    - name: two
    - ip: [10.0.0.2, 10.0.0.9]
only_same:
  host.only:
    - name: 10.0.0.1
    - hostnames: [' one ', many]
only_text:
  host.only:
    - name: 10.3.0.1
    - hostnames: a b
localhost:
  host.present:
    - name: local.example.org
    - ip: 127.0.0.1
