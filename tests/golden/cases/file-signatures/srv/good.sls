{% set first, second = "2E3D678E5B389B21DAB7EAD7A9743B088A954B14", "84C30CB6262F451FEC5A2388D0A60F7ABB0DAF13" %}
{% for name, args in {
    "beside": {"signature": "salt://first.sig"},
    "inside": {"source": "salt://clear", "signature": true},
    "both": {"signature": "salt://both.sig"},
    "there": {"signature": "salt://first.sig"},
    "one-of-two": {"signature": "salt://half.sig", "signed_by_any": [second, first]},
    "all": {"signature": "salt://both.sig", "signed_by_all": [first, second]},
    "not-listed": {"signature": "salt://first.sig", "signed_by_any": first},
}.items() %}
ROOT/box/{{ name }}:
  file.managed:
    - source: {{ args.pop("source", "salt://content") }}
    - gnupghome: ROOT/home
{% for key, value in args.items() %}
    - {{ key }}: {{ value | json }}
{% endfor %}
{% endfor %}

keyring:
  file.managed:
    - name: ROOT/box/keyring
    - source: salt://content
    - signature: salt://first.sig
    - gnupghome: ROOT/empty
    - keyring: ROOT/first.kbx
