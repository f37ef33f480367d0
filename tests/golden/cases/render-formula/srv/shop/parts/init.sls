{%- set root = tpldir.split('/')[0] %}
{%- from root ~ '/map.jinja' import shop, inner with context %}
shop:
  test.nop:
    - settings: {{ shop | json }}
    - inner: {{ inner | json }}
    - here: {{ tpldir }}
    - get: {{ shop['get']('port') }}
    - lax: {{ '' | default('x', boolean=True) }}
    - popped: {{ shop.pop('nothing', none) }}
    - callable: {{ [salt['test.echo'] is callable, salt['no.such'] | default(none) is callable] }}
