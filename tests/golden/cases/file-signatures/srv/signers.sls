{% set first, second, expired, unknown = "2E3D678E5B389B21DAB7EAD7A9743B088A954B14", "84C30CB6262F451FEC5A2388D0A60F7ABB0DAF13", "FD28D0A84E50E23DBA9883EE251E1F8FCB205684", "0D47276F3325DE1CE3E27D35EA71B09493651562" %}
{% for name, args in {
    "any-not": {"signature": "salt://first.sig", "signed_by_any": [second]},
    "all-not": {"signature": "salt://first.sig", "signed_by_all": [first, second]},
    "all-unknown": {"signature": "salt://half.sig", "signed_by_all": [first, unknown]},
    "any-unknown": {"signature": "salt://unknown.sig", "signed_by_any": [unknown]},
    "any-and-all": {"signature": "salt://both.sig", "signed_by_any": [second], "signed_by_all": [first]},
    "any-and-not-all": {"signature": "salt://first.sig", "signed_by_any": [first], "signed_by_all": [second]},
    "expired": {"signature": "salt://expired.sig", "signed_by_any": [expired]},
    "other-file": {"source": "salt://other", "signature": "salt://first.sig", "signed_by_any": [first]},
    "short": {"signature": "salt://first.sig", "signed_by_any": [first[-16:]]},
}.items() %}
signers-{{ name }}:
  file.managed:
    - name: ROOT/box/signers-{{ name }}
    - source: {{ args.pop("source", "salt://content") }}
    - gnupghome: ROOT/home
{% for key, value in args.items() %}
    - {{ key }}: {{ value | json }}
{% endfor %}
{% endfor %}
