# Every minion keeps its files in a folder of its own, named by a grain of its configuration.
{% set home = grains['home'] %}

home:
  file.directory:
    - name: {{ home }}
    - makedirs: True

motd:
  file.managed:
    - name: {{ home }}/motd
    - contents: |
        This is {{ grains['id'] }}, brought here by a reaction to its own start event.
    - require:
      - file: home
