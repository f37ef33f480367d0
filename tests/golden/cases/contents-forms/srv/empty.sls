none:
  file.managed: [{name: ROOT/box/none}, {contents_pillar: none}]
