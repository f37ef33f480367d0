ROOT/box/edit:
  file.managed:
    - contents: |
        alpha
        beta
        gamma
    - replace: False
replace:
  file.replace:
    - name: ROOT/box/edit
    - pattern: alpha
    - repl: a\1
    - backslash_literal: True
    - bufsize: file
    - backup: False
replace-encoding:
  file.replace:
    - name: ROOT/box/edit
    - pattern: gamma
    - repl: delta
    - encoding: utf-8
    - show_changes: False
    - backup: False
line-owner:
  file.line:
    - name: ROOT/box/edit
    - content: added
    - mode: ensure
    - after: beta
    - backup: False
line-match:
  file.line:
    - name: ROOT/box/edit
    - match: beta
    - content: bb
    - mode: replace
line-create:
  file.line:
    - name: ROOT/box/line-new
    - content: first
    - mode: insert
    - location: start
    - create: True
    - user: root
    - group: root
block-template:
  file.blockreplace:
    - name: ROOT/box/edit
    - marker_start: "# start"
    - marker_end: "# end"
    - source: salt://t.txt
    - template: jinja
    - defaults: {who: you, what: that}
    - context: {who: me}
    - append_if_not_found: True
block-sources:
  file.blockreplace:
    - name: ROOT/box/edit
    - marker_start: "# other"
    - marker_end: "# over"
    - sources: [salt://plain.txt, salt://plain.txt]
    - append_if_not_found: True
    - show_changes: False
append-template:
  file.append:
    - name: ROOT/box/edit
    - source: salt://t.txt
    - template: jinja
    - defaults: {who: you, what: that}
    - context: {what: more}
append-sources:
  file.append:
    - name: ROOT/box/edit
    - sources: [salt://plain.txt]
    - show_changes: False
append-white:
  file.append:
    - name: ROOT/box/edit
    - text: "  plain"
    - ignore_whitespace: False
prepend-template:
  file.prepend:
    - name: ROOT/box/edit
    - source: salt://t.txt
    - template: jinja
    - context: {who: first, what: this}
prepend-header:
  file.prepend:
    - name: ROOT/box/edit
    - text: top
    - header: True
    - show_changes: False
uncomment:
  file.append:
    - name: ROOT/box/edit
    - text: ";semi"
uncommented:
  file.uncomment:
    - name: ROOT/box/edit
    - regex: semi
    - char: ";"
    - backup: False
keyvalue:
  file.keyvalue:
    - name: ROOT/box/kv
    - key_values: {A: "1", B: "2"}
    - separator: "="
    - create_if_missing: True
    - append_if_not_found: True
keyvalue-prune:
  file.keyvalue:
    - name: ROOT/box/kv
    - key_values: {A: "1"}
    - separator: "="
    - prune: True
keyvalue-case:
  file.keyvalue:
    - name: ROOT/box/kv
    - key: A
    - value: "X"
    - separator: "="
    - value_ignore_case: True
    - count: 1
unknown-arg:
  test.nop: []
