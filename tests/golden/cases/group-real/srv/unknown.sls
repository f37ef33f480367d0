web:
  group.present:
    - nosuch_argument: True
