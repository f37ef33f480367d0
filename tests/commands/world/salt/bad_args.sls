one:
  file.managed:
    name: /mnt/box/x
two:
  file.managed:
    - nam: /mnt/box/x
