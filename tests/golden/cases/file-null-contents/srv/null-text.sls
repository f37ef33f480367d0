ROOT/box/text:
  file.managed:
    - contents_pillar: nul
