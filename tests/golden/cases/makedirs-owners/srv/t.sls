{% set owner = [{'user': 'daemon'}, {'group': 'daemon'}, {'makedirs': True}] %}
managed:
  file.managed: {{ [{'name': 'ROOT/box/m/.config/app/conf.ini'}, {'contents': 'a=1'}] + owner }}
mode:
  file.managed: {{ [{'name': 'ROOT/box/mode/x/y'}, {'contents': 'y'}, {'mode': '0600'}, {'dir_mode': '0711'}] + owner }}
symlink:
  file.symlink: {{ [{'name': 'ROOT/box/s/x/link'}, {'target': 'nowhere'}] + owner }}
directory:
  file.directory: {{ [{'name': 'ROOT/box/d/x/y'}, {'mode': '0750'}] + owner }}
recurse:
  file.recurse: {{ [{'name': 'ROOT/box/r/x/y'}, {'source': 'salt://tree'}, {'user': 'daemon'}, {'group': 'daemon'}] }}
copy:
  file.copy: {{ [{'name': 'ROOT/box/c/x/y'}, {'source': 'ROOT/box/from'}] + owner }}
hardlink:
  file.hardlink: {{ [{'name': 'ROOT/box/h/x/y'}, {'target': 'ROOT/box/from'}, {'makedirs': True}] }}
there:
  file.managed: {{ [{'name': 'ROOT/box/m/.config/other'}, {'contents': 'b'}, {'user': 'root'}, {'makedirs': True}] }}
