dev:
  'golden': [shared, more]
  'nobody': [secret]
