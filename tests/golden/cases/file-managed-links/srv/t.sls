ROOT/box/link:
  file.managed:
    - contents: through
