{% for name, args in {
    "rejects-of": {"source": "salt://tree.patch", "reject_file": "ROOT/box/rejected"},
    "none": {},
    "relative": {"name": "text"},
    "option": {"name": "ROOT/box/text", "options": "-N --output=x -u"},
    "strip": {"name": "ROOT/box/text", "options": "-px"},
    "strip-long": {"name": "ROOT/box/text", "options": "--strip"},
    "reject-relative": {"name": "ROOT/box/text", "reject_file": "rejected"},
    "reject-nowhere": {"name": "ROOT/box/text", "reject_file": "ROOT/box/nowhere/rejected"},
    "unknown-option": {"name": "ROOT/box/text", "options": "--unknown-option"},
    "old": {"name": "ROOT/box/text", "hash": "md5=1", "dry_run_first": true},
    "tree-without-strip": {"name": "ROOT/box/tree", "source": "salt://tree.patch"},
    "no-patch": {"name": "ROOT/box/text", "source": "salt://errors.sls"},
    "several": {"name": "ROOT/box/text", "source": ["salt://none.patch", "salt://text.patch"]},
    "local": {"name": "ROOT/box/text", "source": "ROOT/srv/text.patch"},
}.items() %}
errors-{{ name }}:
  file.patch:
    - name: {{ args.pop("name", "ROOT/box/" ~ name) }}
    - source: {{ args.pop("source", "salt://text.patch") | json }}
{% for key, value in args.items() %}
    - {{ key }}: {{ value | json }}
{% endfor %}
{% endfor %}
