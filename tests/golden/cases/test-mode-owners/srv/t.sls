# Who is to own these may be made by a state before.
ROOT/box/there:
  file.managed:
    - user: nobody_yet
    - group: nogroup_yet
    - mode: '0600'
    - contents: there
ROOT/box/new:
  file.managed:
    - user: nobody_yet
    - contents: new
folder:
  file.directory:
    - name: ROOT/box
    - user: nobody_yet
tree:
  file.recurse:
    - name: ROOT/box/tree
    - source: salt://tree
    - user: nobody_yet
tree with folders:
  file.recurse:
    - name: ROOT/box/folders
    - source: salt://tree
    - include_empty: True
    - group: nogroup_yet
link:
  file.symlink:
    - name: ROOT/box/link
    - target: there
    - user: nobody_yet
known:
  ssh_known_hosts.present:
    - name: example.org
    - user: nobody_yet
both:
  ssh_known_hosts.present:
    - name: example.org
    - user: nobody_yet
    - key: AAAA
    - fingerprint: aa
    - enc: ssh-rsa
unknown:
  ssh_known_hosts.absent:
    - name: example.org
    - user: nobody_yet
