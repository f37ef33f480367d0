size-only:
  file.tidied:
    - name: ROOT/box/t
    - age: 5
    - size: 10
    - age_size_only: size
    - time_comparison: mtime
age-only:
  file.tidied:
    - name: ROOT/box/t
    - age: 5
    - size: 10
    - age_size_only: age
    - time_comparison: mtime
    - exclude: ['small']
nothing:
  file.tidied:
    - name: ROOT/box/t
    - age: 5
    - size: 1KB
    - age_size_logical_operator: and
    - time_comparison: mtime
