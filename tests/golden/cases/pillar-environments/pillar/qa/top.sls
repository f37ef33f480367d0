qa:
  'G@id:golden': [q]
