section:
  pkgrepo.managed:
    - name: deb [signed-by=/k.gpg] http://slash.example.org/debian/ stable main
    - file: /etc/apt/sources.list.d/slash.sources
    - aptkey: False
    - refresh: False
    - suites: [stable, stable-updates]
line:
  pkgrepo.managed:
    - name: deb [signed-by=/k.gpg] http://line.example.org/debian/ stable main
    - file: /etc/apt/sources.list.d/line.list
    - aptkey: False
    - refresh: False
arch:
  pkgrepo.managed:
    - name: deb [signed-by=/k.gpg] http://arch.example.org/debian stable main
    - file: /etc/apt/sources.list.d/old.list
    - aptkey: False
    - refresh: False
