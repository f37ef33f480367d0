one:
  pkg.installed:
    - version: '2.0'
three:
  pkg.installed:
    - version: '1.5'
    - allow_updates: True
held:
  pkg.installed:
    - name: six
    - version: '2.0'
held-updated:
  pkg.installed:
    - name: six
    - version: '2.0'
    - update_holds: True
again:
  pkg.installed:
    - name: two
    - reinstall: True
five:
  pkg.installed:
    - version: latest
downgrade:
  pkg.installed:
    - name: four
    - version: '1.0'
