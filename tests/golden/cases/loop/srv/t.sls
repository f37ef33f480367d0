until:
  loop.until:
    - name: test.echo
    - m_args: [5]
    - condition: m_ret == 5
until_kwargs:
  loop.until:
    - name: file.file_exists
    - m_kwargs: {path: ROOT/srv/t.sls}
    - condition: m_ret
    - period: 0.1
late:
  loop.until:
    - name: test.ping
    - condition: m_ret == 7
    - period: 0.4
    - timeout: 0.5
no_condition:
  loop.until:
    - name: test.ping
no_function:
  loop.until:
    - name: no.such
    - condition: m_ret
equal:
  loop.until_no_eval:
    - name: test.echo
    - args: [x]
    - expected: x
{% if not opts.test %}
map:
  loop.until_no_eval:
    - name: test.kwarg
    - kwargs: {a: 1}
    - expected: {a: 1}
{% endif %}
greater:
  loop.until_no_eval:
    - name: test.echo
    - args: [5]
    - compare_operator: gt
    - expected: 3
contains:
  loop.until_no_eval:
    - name: test.echo
    - args: [abc]
    - compare_operator: contains
    - expected: b
never:
  loop.until_no_eval:
    - name: test.ping
    - expected: False
    - period: 0.4
    - timeout: 0.5
bad_operator:
  loop.until_no_eval:
    - name: test.ping
    - expected: True
    - compare_operator: nosuch
bad_function:
  loop.until_no_eval:
    - name: no.such
    - expected: True
