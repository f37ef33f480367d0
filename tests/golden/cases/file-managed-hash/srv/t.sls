good:
  file.managed:
    - name: ROOT/box/good
    - source: ROOT/box/local
    - source_hash: 434728a410a78f56fc1b5899c3593436e61ab0c731e9072d95e96db290205e53
bad:
  file.managed:
    - name: ROOT/box/bad
    - source: ROOT/box/local
    - source_hash: sha256=aaaaa8a410a78f56fc1b5899c3593436e61ab0c731e9072d95e96db290205e53
fileurl:
  file.managed:
    - name: ROOT/box/fileurl
    - source: file://ROOT/box/local
nohash:
  file.managed:
    - name: ROOT/box/nohash
    - source: http://127.0.0.1:9/nothing
skip:
  file.managed:
    - name: ROOT/box/skip
    - source: http://127.0.0.1:9/nothing
    - skip_verify: True
salturl:
  file.managed:
    - name: ROOT/box/salturl
    - source: salt://s.txt?saltenv=base
badurl:
  file.managed:
    - name: ROOT/box/badurl
    - source: nourl
