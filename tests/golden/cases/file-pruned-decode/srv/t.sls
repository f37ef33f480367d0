ROOT/box/empty:
  file.pruned: []
full:
  file.pruned:
    - name: ROOT/box/full
deep:
  file.pruned:
    - name: ROOT/box/deep
    - recurse: True
some:
  file.pruned:
    - name: ROOT/box/some
    - ignore_errors: True
young:
  file.pruned:
    - name: ROOT/box/young
    - older_than: 3
none:
  file.pruned:
    - name: ROOT/box/none
ROOT/box/decoded:
  file.decode:
    - encoded_data: |
        aGVs
        bG8K
pillar-text:
  file.decode:
    - name: ROOT/box/from-pillar
    - contents_pillar: a:b
    - encoding_type: base64
    - checksum: sha256
both:
  file.decode:
    - name: ROOT/box/both
    - contents_pillar: a:b
    - encoded_data: aGVsbG8K
neither:
  file.decode:
    - name: ROOT/box/neither
no-pillar:
  file.decode:
    - name: ROOT/box/no-pillar
    - contents_pillar: a:c
salt://f.txt:
  file.not_cached: []
salt://never.txt:
  file.not_cached: []
/etc/hostname:
  file.not_cached: []
