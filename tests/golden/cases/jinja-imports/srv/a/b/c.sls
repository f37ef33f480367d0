{% from "./near.jinja" import n, m as mm with context %}
{% from "../lib.jinja" import who %}
{% import "a/lib.jinja" as lib %}
{% import_yaml "a/data.yaml" as data %}
{% import_json "a/data.json" as jdata %}
{% import_text "a/text.txt" as text %}
{% set own = 'own' %}
ROOT/box/c:
  file.managed:
    - contents:
      - {{ lib.who('x') }} {{ n }} {{ mm('y') }} {{ who('z') }}
      - {{ data.list | join(',') }} {{ data.id }} {{ jdata['k'][0] }}
      - {{ text | trim | yaml_dquote }}
      - {{ tplfile }} {{ tpldir }} {{ tpldot }} {{ slspath }} {{ sls }} {{ slsdotpath }} {{ sls_path }} {{ slscolonpath }}
      - {% include "a/inc.txt" %}
      - {% include "nosuch" ignore missing %}none
      - {% include ["nosuch", "a/inc.txt"] %}
      - {{ lib.where }} | {{ lib.opt }}
