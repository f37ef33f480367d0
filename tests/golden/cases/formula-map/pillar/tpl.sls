TEMPLATE:
  pkg:
    version: 1.2
  list: [b, c]
  tofs:
    files_switch: [id, os, roles]
