{% set y %}
a: 99999999999999999999999
b: 18446744073709551615
c: -9223372036854775808
d: 0x1ffffffffffffffff
{% endset %}
{% set v = y | load_yaml %}
x:
  test.nop:
    - name: {{ v.a }} {{ v.b }} {{ v.c }} {{ v.d }} {{ v.a + 1 }}
