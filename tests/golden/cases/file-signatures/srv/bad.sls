{% for name, args in {
    "forged": {"source": "salt://forged", "signature": true},
    "other": {"source": "salt://other", "signature": "salt://first.sig"},
    "unsigned": {"signature": true},
    "unknown-key": {"signature": "salt://unknown.sig"},
    "half-unknown": {"signature": "salt://half.sig"},
    "expired-key": {"signature": "salt://expired.sig"},
    "no-signature": {"signature": "salt://none.sig"},
    "hash-of-other": {"source": "ROOT/srv/other", "source_hash": "salt://sums", "source_hash_name": "content", "source_hash_sig": "salt://sums.sig"},
    "no-keys": {"signature": "salt://first.sig", "gnupghome": "ROOT/empty"},
    "no-home": {"signature": "salt://first.sig", "gnupghome": "ROOT/none"},
    "other-keyring": {"signature": "salt://second.sig", "keyring": "ROOT/first.kbx"},
}.items() %}
bad-{{ name }}:
  file.managed:
    - name: ROOT/box/bad-{{ name }}
    - source: {{ args.pop("source", "salt://content") }}
    - gnupghome: {{ args.pop("gnupghome", "ROOT/home") }}
{% for key, value in args.items() %}
    - {{ key }}: {{ value | json }}
{% endfor %}
{% endfor %}
