{% for name, args in {
    "made-char": {"ntype": "c", "major": 1, "minor": 3, "mode": "0660"},
    "made-block": {"ntype": "b", "major": 7, "minor": 200},
    "made-pipe": {"ntype": "p", "mode": "0640"},
    "owned": {"ntype": "p", "user": "games", "group": "games"},
    "there": {"ntype": "p"},
    "other": {"ntype": "c", "major": 1, "minor": 5},
    "plain": {"ntype": "p"},
    "nowhere/pipe": {"ntype": "p"},
    "odd": {"ntype": "x"},
    "made-pipe-as-char": {"name": "ROOT/box/made-pipe", "ntype": "c", "major": 1, "minor": 3},
    "plain-as-char": {"name": "ROOT/box/plain", "ntype": "c", "major": 1, "minor": 3},
    "plain-as-block": {"name": "ROOT/box/plain", "ntype": "b", "major": 1, "minor": 3},
    "block-other": {"name": "ROOT/box/made-block", "ntype": "b", "major": 7, "minor": 201},
}.items() %}
{{ name }}:
  file.mknod:
    - name: {{ args.pop("name", "ROOT/box/" ~ name) }}
{% for key, value in args.items() %}
    - {{ key }}: {{ value | json }}
{% endfor %}
{% endfor %}
