sections:
  ini.sections_present:
    - name: ROOT/box/d.ini
    - sections: [first, fresh]
