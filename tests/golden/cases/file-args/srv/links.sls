behind:
  file.managed:
    - name: ROOT/box/link
    - contents: through
beside:
  file.managed:
    - name: ROOT/box/link2
    - contents: instead
    - follow_symlinks: False
