{% set first, second = "2E3D678E5B389B21DAB7EAD7A9743B088A954B14", "84C30CB6262F451FEC5A2388D0A60F7ABB0DAF13" %}
{% for name, args in {
    "beside": {"source_hash": "salt://sums", "source_hash_sig": "salt://sums.sig"},
    "inside": {"source_hash": "salt://sums.clear", "source_hash_sig": true},
    "by-first": {"source_hash": "salt://sums", "source_hash_sig": "salt://sums.sig", "signed_by_any": first},
    "by-second": {"source_hash": "salt://sums", "source_hash_sig": "salt://sums.sig", "signed_by_any": second},
    "bad": {"source_hash": "salt://sums", "source_hash_sig": "salt://first.sig"},
    "missing": {"source_hash": "salt://sums", "source_hash_sig": "salt://none.sig"},
    "no-hashes": {"source_hash": "salt://none", "source_hash_sig": "salt://none.sig"},
    "unsigned": {"source_hash": "salt://sums", "source_hash_sig": true},
    "odd": {"source_hash": "odd"},
    "no-hash-inside": {"source_hash": "salt://first.sig"},
}.items() %}
hashes-{{ name }}:
  file.managed:
    - name: ROOT/box/hashes-{{ name }}
    - source: {{ args.pop("source", "ROOT/srv/content") }}
    - gnupghome: ROOT/home
{% for key, value in args.items() %}
    - {{ key }}: {{ value | json }}
{% endfor %}
{% endfor %}
