ROOT/box/link:
  file.managed:
    - contents: through
ROOT/box/dangling:
  file.managed:
    - contents: made
