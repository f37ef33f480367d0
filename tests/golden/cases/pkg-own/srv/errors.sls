nosuch:
  pkg.installed: []
nosuch-version:
  pkg.installed:
    - name: one
    - version: '9.0'
nosuch-several:
  pkg.installed:
    - pkgs: [nosuch1, one, nosuch2]
nosuch-range:
  pkg.installed:
    - name: one
    - version: '>=9.0'
fails:
  pkg.installed: []
nothing:
  pkg.installed:
    - pkgs: []
nosuch-latest:
  pkg.latest:
    - name: nosuch
nosuch-removed:
  pkg.removed:
    - name: nosuch
nosuch-purged:
  pkg.purged:
    - name: nosuch
nosuch-held:
  pkg.held:
    - name: nosuch
nosuch-unheld:
  pkg.unheld:
    - name: nosuch
none-latest:
  pkg.latest:
    - pkgs: []
none-removed:
  pkg.removed:
    - pkgs: []
none-held:
  pkg.held:
    - pkgs: []
none-unheld:
  pkg.unheld:
    - pkgs: []
sources-and-pkgs:
  pkg.installed:
    - pkgs: [one]
    - sources:
      - one: salt://one.deb
sources-not-there:
  pkg.installed:
    - sources:
      - one: salt://nosuch.deb
