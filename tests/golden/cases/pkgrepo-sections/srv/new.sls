section:
  pkgrepo.managed:
    - name: deb [signed-by=/k.gpg] http://slash.example.org/debian stable main
    - file: /etc/apt/sources.list.d/slash.sources
    - aptkey: False
    - refresh: False
line:
  pkgrepo.managed:
    - name: deb [signed-by=/k.gpg] http://line.example.org/debian stable main
    - file: /etc/apt/sources.list.d/line.list
    - aptkey: False
    - refresh: False
