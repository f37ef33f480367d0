not-there-yet:
  pkg.installed:
    - sources:
      - file-one: ROOT/files/nosuch.deb
      - file-two: ROOT/files/file-two.deb
one-is-there:
  pkg.installed:
    - sources:
      - one: ROOT/files/nosuch.deb
      - file-two: ROOT/files/file-two.deb
