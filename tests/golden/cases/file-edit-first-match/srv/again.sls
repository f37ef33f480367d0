comment:
  file.comment: [{name: ROOT/box/comment}, {regex: ^two}]
uncomment:
  file.uncomment: [{name: ROOT/box/uncomment}, {regex: ^two}]
