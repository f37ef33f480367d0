same:
  timezone.system:
    - name: Europe/Berlin
same_local:
  timezone.system:
    - name: Europe/Berlin
    - utc: False
