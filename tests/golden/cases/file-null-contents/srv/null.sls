ROOT/box/n:
  file.managed:
    - contents_pillar: nul
ROOT/box/g:
  file.managed:
    - contents_grains: nul
