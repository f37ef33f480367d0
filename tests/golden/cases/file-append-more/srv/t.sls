nonl:
  file.append:
    - name: ROOT/box/nonl
    - text: added
tmpl:
  file.append:
    - name: ROOT/box/tmpl
    - text: "id {{ grains['id'] }}"
empty:
  file.append:
    - name: ROOT/box/empty
    - text: ''
number:
  file.append:
    - name: ROOT/box/number
    - text: 5
dup:
  file.append:
    - name: ROOT/box/dup
    - text: [a, a, b]
sources:
  file.append:
    - name: ROOT/box/sources
    - sources:
      - salt://one.txt
      - salt://two.txt
nosource:
  file.append:
    - name: ROOT/box/ns
    - source: salt://nosuch
template:
  file.append:
    - name: ROOT/box/rendered
    - source: salt://t.jinja
    - template: jinja
    - context: {x: ctx}
