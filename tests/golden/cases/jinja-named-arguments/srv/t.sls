{% set d = {'a': {'b': 1}} %}
{% set values = {
  'regex_replace': 'abc' | regex_replace(rgx='b', val='x'),
  'regex_replace_mixed': 'aBc' | regex_replace('b', val='x', ignorecase=True),
  'regex_match': 'abc' | regex_match(rgx='(a)(.*)'),
  'regex_search': 'abc' | regex_search(rgx='(b)'),
  'traverse': d | traverse(key='a:b'),
  'traverse_default': d | traverse(key='a:c', default=3),
  'hmac': 's' | hmac(shared_secret='k', challenge_hmac='x'),
  'compare_lists': [1] | compare_lists(new=[2]),
  'compare_dicts': {'a': 1} | compare_dicts(new={'a': 2}),
  'substring_in_list': 'b' | substring_in_list(list_to_search=['abc']),
  'set_dict_key_value': d | set_dict_key_value(keys='x:y', value=1),
  'is_ip': '10.0.0.1' | is_ip(options='private'),
  'exactly_n': [true, false] | exactly_n_true(amount=1),
  'method_call': 'a,b' | method_call('split', sep=','),
  'undefined_items': nope | items | list,
} %}
ROOT/box/values:
  file.managed:
    - contents: {{ values | json | json }}
