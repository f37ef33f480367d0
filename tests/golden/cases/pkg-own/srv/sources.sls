by-file:
  pkg.installed:
    - sources:
      - file-one: ROOT/files/file-one.deb
      - file-two: ROOT/files/file-two.deb
