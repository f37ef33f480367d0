section:
  pkgrepo.managed:
    - name: deb [signed-by=/k.gpg] http://slash.example.org/debian stable main
    - file: /etc/apt/sources.list.d/slash.sources
    - aptkey: False
    - refresh: False
