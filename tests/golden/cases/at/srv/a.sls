echo x:
  at.present:
    - timespec: '12:00 11/24/2026'
    - tag: tag1
    - unique_tag: True
