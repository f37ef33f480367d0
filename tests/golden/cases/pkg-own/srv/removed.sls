one:
  pkg.removed: []
several-removed:
  pkg.removed:
    - pkgs: [two, three, nosuch]
versioned:
  pkg.removed:
    - name: four
    - version: '9.0'
