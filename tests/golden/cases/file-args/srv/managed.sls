encoding:
  file.managed:
    - name: ROOT/box/latin
    - contents: "caf\u00e9"
    - encoding: latin-1
tmp-dir:
  file.managed:
    - name: ROOT/box/checked
    - contents: checked
    - check_cmd: grep -q checked
    - tmp_dir: ROOT/box
    - tmp_ext: .conf
check-fails:
  file.managed:
    - name: ROOT/box/unchecked
    - contents: other
    - check_cmd: grep -q checked
delimiter:
  file.managed:
    - name: ROOT/box/delimited
    - contents_pillar: a:lines
    - contents_delimiter: ":"
    - contents_newline: False
grains:
  file.managed:
    - name: ROOT/box/grained
    - contents_grains: kernel
pillar-missing:
  file.managed:
    - name: ROOT/box/none
    - contents_pillar: no:such
empty:
  file.managed:
    - name: ROOT/box/empty
    - contents: ""
    - allow_empty: True
empty-not-allowed:
  file.managed:
    - name: ROOT/box/empty2
    - contents_pillar: a:empty
    - allow_empty: False
keep-source:
  file.managed:
    - name: ROOT/box/kept
    - source: salt://plain.txt
    - keep_source: False
    - verify_ssl: False
    - use_etag: True
    - win_owner: nobody
dir-mode:
  file.managed:
    - name: ROOT/box/deep/er/file
    - source: salt://t.txt
    - template: jinja
    - defaults: {who: you, what: that}
    - context: {who: me}
    - makedirs: True
    - dir_mode: 750
    - mode: "0640"
sources:
  file.managed:
    - name: ROOT/box/sources
    - source:
      - salt://nosuch.txt
      - salt://plain.txt
sources-hash:
  file.managed:
    - name: ROOT/box/local
    - source: ROOT/srv/plain.txt
    - source_hash: {{ salt['hashutil.digest']('plain\n', 'sha256') }}
no-sources:
  file.managed:
    - name: ROOT/box/none2
    - source: [salt://nosuch1, salt://nosuch2]
not-absolute:
  file.managed:
    - name: relative/file
not-there:
  file.managed:
    - name: ROOT/box/no/dir/file
    - contents: x
no-create:
  file.managed:
    - name: ROOT/box/not-made
    - contents: x
    - create: False
no-replace:
  file.managed:
    - name: ROOT/box/kept
    - contents: other
    - replace: False
hidden:
  file.managed:
    - name: ROOT/box/hidden
    - contents: secret
    - show_changes: False
no-new-diff:
  file.managed:
    - name: ROOT/box/new-diff
    - contents: "line one"
    - new_file_diff: True
two-contents:
  file.managed:
    - name: ROOT/box/two
    - contents: x
    - contents_pillar: a:lines
bad-user:
  file.managed:
    - name: ROOT/box/bad-user
    - contents: x
    - user: no-such-user
bad-template:
  file.managed:
    - name: ROOT/box/bad-template
    - source: salt://t.txt
    - template: no-such-engine
mako-context:
  file.managed:
    - name: ROOT/box/context
    - source: salt://t.txt
    - template: jinja
    - context: [not, a, mapping]
folder:
  file.managed:
    - name: ROOT/box
    - contents: x
selinux:
  file.managed:
    - name: ROOT/box/selinux
    - contents: x
    - selinux: {seuser: system_u}
