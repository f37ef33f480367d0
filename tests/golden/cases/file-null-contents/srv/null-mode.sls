ROOT/box/n:
  file.managed:
    - contents_pillar: nul
    - mode: '0600'
