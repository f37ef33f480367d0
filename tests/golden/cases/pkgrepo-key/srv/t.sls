server:
  pkgrepo.managed:
    - name: deb [signed-by=/etc/apt/keyrings/case.gpg] http://case.example.org/debian stable main
    - file: /etc/apt/sources.list.d/case.list
    - key_url: salt://case.asc
    - aptkey: False
    - refresh: False
armored:
  pkgrepo.managed:
    - name: deb [signed-by=/etc/apt/keyrings/armored.asc] http://armored.example.org/debian stable main
    - file: /etc/apt/sources.list.d/armored.list
    - key_url: salt://case.asc
    - aptkey: False
    - refresh: False
local:
  pkgrepo.managed:
    - name: deb [signed-by=/etc/apt/keyrings/local.gpg] http://local.example.org/debian stable main
    - file: /etc/apt/sources.list.d/local.list
    - key_url: file://ROOT/box/local.gpg
    - aptkey: False
    - refresh: False
