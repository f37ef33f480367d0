by-path:
  file.tidied:
    - name: ROOT/box/t
    - matches: ['.*/sub/', '.*/keep']
    - exclude: ['.*/keep/']
    - full_path_match: True
    - rmdirs: True
