append:
  file.append: [{name: ROOT/box/append}, {source: salt://one}]
prepend:
  file.prepend: [{name: ROOT/box/prepend}, {sources: [salt://one, salt://two]}]
block:
  file.blockreplace: [{name: ROOT/box/block}, {marker_start: '# A'}, {marker_end: '# B'}, {source: salt://one}, {append_if_not_found: True}]
text:
  file.append: [{name: ROOT/box/none}, {text: 'raw {{ "{{ 1 }}" }}'}]
backslash:
  file.replace: [{name: ROOT/box/backslash}, {pattern: nope}, {repl: 'c:\d\\e'}, {append_if_not_found: True}, {backslash_literal: True}]
