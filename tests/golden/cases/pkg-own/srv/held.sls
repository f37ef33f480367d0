several-held:
  pkg.held:
    - pkgs: [two, three]
versioned-held:
  pkg.held:
    - name: five
    - version: '1.0'
