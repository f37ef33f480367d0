ensure_after:
  file.line:
    - name: ROOT/box/a
    - content: one and a half
    - mode: ensure
    - after: one
ensure_before:
  file.line:
    - name: ROOT/box/a
    - content: zero
    - mode: ensure
    - before: one
replace:
  file.line:
    - name: ROOT/box/b
    - content: a = 5
    - match: a = 1
    - mode: replace
replaceindent:
  file.line:
    - name: ROOT/box/b
    - content: indented = 9
    - match: indented = 2
    - mode: replace
delete:
  file.line:
    - name: ROOT/box/b
    - match: c = 3
    - mode: delete
insert_end:
  file.line:
    - name: ROOT/box/a
    - content: the end
    - mode: insert
    - location: end
insert_start:
  file.line:
    - name: ROOT/box/a
    - content: the start
    - mode: insert
    - location: start
insert_after:
  file.line:
    - name: ROOT/box/b
    - content: under indented
    - mode: insert
    - after: indented
    - indent: True
insert_before:
  file.line:
    - name: ROOT/box/b
    - content: above section
    - mode: insert
    - before: \[section\]
empty:
  file.line:
    - name: ROOT/box/empty
    - content: x
    - mode: ensure
    - after: nothing
between:
  file.line:
    - name: ROOT/box/a
    - content: between
    - mode: ensure
    - after: two
    - before: three
missing:
  file.line:
    - name: ROOT/box/nosuch
    - content: x
    - mode: insert
    - location: end
create:
  file.line:
    - name: ROOT/box/created
    - content: x
    - mode: insert
    - location: end
    - create: True
nomode:
  file.line:
    - name: ROOT/box/a
    - content: x
badmode:
  file.line:
    - name: ROOT/box/a
    - content: x
    - mode: nosuch
nomatch:
  file.line:
    - name: ROOT/box/a
    - content: x
    - match: nothing like it
    - mode: replace
noanchor:
  file.line:
    - name: ROOT/box/a
    - content: x
    - after: nothing like it
    - mode: ensure
