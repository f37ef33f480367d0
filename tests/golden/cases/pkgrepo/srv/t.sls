new:
  pkgrepo.managed:
    - name: deb http://new.example.org/debian stable main
    - file: /etc/apt/sources.list.d/new.list
    - refresh: False
there:
  pkgrepo.managed:
    - name: deb http://deb.example.org/debian stable main contrib
    - refresh: False
comps:
  pkgrepo.managed:
    - name: deb http://deb.example.org/debian stable main
    - comps: main,contrib,non-free
    - refresh: False
arch:
  pkgrepo.managed:
    - name: deb [arch=amd64] http://arch.example.org/debian stable main
    - refresh: False
archs:
  pkgrepo.managed:
    - name: deb http://archs.example.org/debian stable main
    - architectures: amd64,arm64
    - file: /etc/apt/sources.list.d/archs.list
    - comments:
      - first
      - second
    - refresh: False
disabled:
  pkgrepo.managed:
    - name: deb http://disabled.example.org/debian stable main
    - file: /etc/apt/sources.list.d/disabled.list
    - disabled: True
    - refresh: False
signed:
  pkgrepo.managed:
    - name: deb [arch=amd64 signed-by=/etc/apt/keyrings/x.gpg] http://signed.example.org/debian stable main
    - file: /etc/apt/sources.list.d/signed.list
    - aptkey: False
    - refresh: False
humanname:
  pkgrepo.managed:
    - humanname: Something
    - name: deb http://human.example.org/debian stable main
    - dist: testing
    - file: /etc/apt/sources.list.d/human.list
    - refresh: False
section:
  pkgrepo.managed:
    - name: deb [signed-by=/etc/apt/keyrings/x.gpg] http://section.example.org/debian stable main contrib
    - file: /etc/apt/sources.list.d/section.sources
    - aptkey: False
    - refresh: False
in_section:
  pkgrepo.managed:
    - name: deb [signed-by=/usr/share/keyrings/one.gpg] http://one.example.org/debian testing main
    - refresh: False
refreshed:
  pkgrepo.managed:
    - name: deb http://refreshed.example.org/debian ./
    - file: /etc/apt/sources.list.d/refreshed.list
