{% set first, second = "2E3D678E5B389B21DAB7EAD7A9743B088A954B14", "84C30CB6262F451FEC5A2388D0A60F7ABB0DAF13" %}
{% for name, args in {
    "good": {"signature": "salt://top.first.sig"},
    "good-local": {"source": "ROOT/srv/top.tar", "signature": "salt://top.first.sig"},
    "by": {"signature": "salt://top.second.sig", "signed_by_any": [first, second], "signed_by_all": second},
    "not-by": {"signature": "salt://top.second.sig", "signed_by_any": first},
    "not-by-all": {"signature": "salt://top.second.sig", "signed_by_all": [second, first]},
    "unknown": {"signature": "salt://top.unknown.sig"},
    "other": {"signature": "salt://top.sums.sig"},
    "no-signature": {"signature": "salt://none.sig"},
    "hash": {"source_hash": "salt://top.sums", "source_hash_sig": "salt://top.sums.sig"},
    "hash-by": {"source_hash": "salt://top.sums", "source_hash_sig": "salt://top.sums.sig", "signed_by_any": first},
    "hash-not-by": {"source_hash": "salt://top.sums", "source_hash_sig": "salt://top.sums.sig", "signed_by_any": second},
    "hash-other": {"source_hash": "salt://top.sums", "source_hash_sig": "salt://top.first.sig"},
    "hash-no-signature": {"source_hash": "salt://top.sums", "source_hash_sig": "salt://none.sig"},
}.items() %}
ROOT/box/{{ name }}:
  archive.extracted:
    - source: {{ args.pop("source", "salt://top.tar") }}
    - gnupghome: ROOT/home
{% for key, value in args.items() %}
    - {{ key }}: {{ value | json }}
{% endfor %}
{% endfor %}
