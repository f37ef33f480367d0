ensure_end:
  file.line:
    - name: ROOT/box/hosts
    - mode: ensure
    - content: 10.0.0.1 db
    - before: '# end'
replace_default:
  file.line:
    - name: ROOT/box/ini
    - mode: replace
    - match: 'x = 1'
    - content: 'x = 10'
    - show_changes: False
delete_re:
  file.line:
    - name: ROOT/box/ini
    - mode: delete
    - match: '^\[b\]$'
quiet:
  file.line:
    - name: ROOT/box/ini
    - mode: ensure
    - content: y
    - after: nomatch
    - quiet: True
noindent:
  file.line:
    - name: ROOT/box/ini
    - mode: insert
    - content: '   z = 3'
    - after: 'x = 10'
    - indent: False
