ROOT/box/text:
  file.patch:
    - source: salt://text.patch
ROOT/box/again:
  file.patch:
    - source: salt://template.patch
    - template: jinja
    - context: {word: zwei}
ROOT/box/tree:
  file.patch:
    - source: salt://tree.patch
    - strip: 2
tree-by-option:
  file.patch:
    - name: ROOT/box/tree
    - source: salt://tree.patch
    - options: "--strip 2"
