there:
  locale.present:
    - name: de_DE.UTF-8
there_modified:
  locale.present:
    - name: ca_ES.UTF-8@valencia
there_charmap:
  locale.present:
    - name: de_DE.UTF-8 UTF-8
missing:
  locale.present:
    - name: xx_YY.UTF-8
