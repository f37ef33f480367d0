cookie:
  file.managed: [{name: ROOT/box/cookie}, {contents: "COOKIE\n"}, {contents_newline: False}]
crlf:
  file.managed: [{name: ROOT/box/crlf}, {contents: "a\r\nb\r\n"}, {contents_newline: False}]
list:
  file.managed: [{name: ROOT/box/list}, {contents: [a, "b\n"]}, {contents_newline: False}]
pillar:
  file.managed: [{name: ROOT/box/pillar}, {contents_pillar: text}, {contents_newline: False}]
created:
  file.keyvalue: [{name: ROOT/box/created}, {key: A}, {value: '1'}, {create_if_missing: True}]
port:
  file.keyvalue: [{name: ROOT/box/port}, {key: Port}, {value: '2222'}, {separator: ' '}, {uncomment: ' #'}]
configparser:
  file.serialize: [{name: ROOT/box/ini}, {serializer: configparser}, {dataset: {s: {m: "a\nb"}}}]
flow:
  file.serialize: [{name: ROOT/box/flow}, {serializer: yaml}, {dataset: {s: [1, 2]}}, {serializer_opts: [{default_flow_style: True}]}]
unused:
  file.serialize: [{name: ROOT/box/unused}, {serializer: json}, {dataset: {a: 1}}, {deserializer_opts: [{x: 1}]}]
