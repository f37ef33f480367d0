both:
  pkgrepo.managed:
    - name: deb http://both.example.org/debian stable main
    - enabled: True
    - disabled: True
repo:
  pkgrepo.managed:
    - name: deb http://both.example.org/debian stable main
    - repo: x
invalid:
  pkgrepo.managed:
    - name: nothing good
    - refresh: False
keys:
  pkgrepo.managed:
    - name: deb http://both.example.org/debian stable main
    - key_url: http://x/y
    - allow_insecure_key: False
unsigned:
  pkgrepo.managed:
    - name: deb http://unsigned.example.org/debian stable main
    - file: /etc/apt/sources.list.d/unsigned.list
    - aptkey: False
    - refresh: False
clean:
  pkgrepo.managed:
    - name: deb http://clean.example.org/debian stable main
    - file: /etc/apt/sources.list.d/clean.list
    - clean_file: True
    - refresh: False
enable:
  pkgrepo.managed:
    - name: deb http://disabled.example.org/debian stable main
    - file: /etc/apt/sources.list.d/disabled.list
    - refresh: False
disable:
  pkgrepo.managed:
    - name: deb http://new.example.org/debian stable main
    - enabled: False
    - refresh: False
