all:
  saltutil.sync_all:
    - refresh: True
modules: saltutil.sync_modules
named:
  saltutil.sync_grains:
    - name: whatever
one:
  process.absent:
    - name: golden-process-never
nobody:
  process.absent:
    - name: golden-process
    - user: daemon
signal:
  process.absent:
    - name: golden-process-nothing
    - signal: 9
