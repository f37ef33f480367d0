gone:
  at.absent:
    - tag: tag1
