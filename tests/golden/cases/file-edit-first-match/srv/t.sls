r:
  file.line: [{name: ROOT/box/r}, {mode: replace}, {match: 'x='}, {content: 'x=9'}]
d:
  file.line: [{name: ROOT/box/d}, {mode: delete}, {match: 'x='}]
end:
  file.line: [{name: ROOT/box/end}, {mode: insert}, {location: end}, {content: new}]
literal:
  file.line: [{name: ROOT/box/literal}, {mode: delete}, {match: a.b}]
between:
  file.line: [{name: ROOT/box/between}, {mode: insert}, {after: a}, {before: c}, {content: new}]
comment:
  file.comment: [{name: ROOT/box/comment}, {regex: ^two}]
anchored:
  file.comment: [{name: ROOT/box/anchored}, {regex: ^two$}]
uncomment:
  file.uncomment: [{name: ROOT/box/uncomment}, {regex: ^two}]
