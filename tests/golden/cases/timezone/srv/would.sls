other:
  timezone.system:
    - name: America/Denver
other_local:
  timezone.system:
    - name: America/Denver
    - utc: False
