//! Python's behaviour with values of all types, and its error messages.

use super::{check, check_errors};

#[test]
fn values_other_than_data_print_as_in_python() {
    check(&[
        ("{{ range(3) }} {{ range(1, 10, 3) }} {{ [range(2)] }}", "range(0, 3) range(1, 10, 3) [range(0, 2)]"),
        ("{{ range(5, 0, -2) | list }} {{ range(3)[1] }} {{ range(3)[-1] }}", "[5, 3, 1] 1 2"),
        ("{% set r = range(2) %}{% for i in r %}{{ i }}{% endfor %}{{ r | length }}", "012"),
        ("{{ range(3) is sequence }} {{ 2 in range(3) }} {{ range(0) | list }}", "True True []"),
        ("{{ namespace(a=1, b=[]) }}", "<Namespace {'a': 1, 'b': []}>"),
        ("{% macro m() %}{% endmacro %}{{ m }}", "<Macro 'm'>"),
        (
            "{{ salt['test.echo'] }} {{ salt.test }}",
            "<LoadedFunc name='test.echo'> <LoadedMod module='salt.loaded.test'>",
        ),
        ("{{ salt.get('nope', 1) }} {{ salt.nope is defined }}", "1 False"),
    ]);
}

#[test]
fn chains_and_tests_compare_like_operators() {
    check(&[
        ("{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 1 == 1 != 2 }} {{ 1 in [1] not in [2] }}", "True False True True"),
        ("{{ [1, 2] is gt [1] }} {{ 'a' is in 'abc' }} {{ 4 is divisibleby 2 }}", "True True True"),
        ("{{ -3 is odd }} {{ true is odd }} {{ 2.0 is even }} {{ 3 is even }}", "True True True False"),
    ]);
    check_errors(&[
        ("{{ 1 < 'a' < 3 }}", "Jinja error: '<' not supported between instances of 'int' and 'str'"),
        ("{{ 'a' is gt 1 }}", "Jinja error: '>' not supported between instances of 'str' and 'int'"),
        ("{{ 1 is in 'abc' }}", "Jinja error: 'in <string>' requires string as left operand, not int"),
        ("{{ {} is odd }}", "Jinja error: unsupported operand type(s) for %: 'dict' and 'int'"),
        ("{{ range(2) + [1] }}", "Jinja error: unsupported operand type(s) for +: 'range' and 'list'"),
    ]);
}

#[test]
fn macros_refuse_arguments_without_a_parameter() {
    check(&[
        (
            "{% macro m(a, b=a, c=[a, b], d=1) -%} {{ a }}{{ b }}{{ c }}{{ d }}{% endmacro %}{{ m(1) }} {{ m(1, d=2, c='x') }}",
            "11[1, 1]1 11x2",
        ),
        ("{% macro m(a, b=a ~ '!') %}{{ b }}{{ varargs }}{% endmacro %}[{{ m(1, 2, 3, 4) }}]", "[2(3, 4)]"),
        ("{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=3) }}{{ m(b=4, a=5) }}", "121354"),
        ("{% macro m() %}<{{ caller(1) }}>{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}", "<1>"),
    ]);
    check_errors(&[
        ("{% macro m(a=1, b) %}{% endmacro %}", "Jinja syntax error: non-default argument follows default argument"),
        ("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "Jinja error: macro 'm' takes not more than 1 argument(s)"),
        ("{% macro m(a) %}{% endmacro %}{{ m(z=2) }}", "Jinja error: macro 'm' takes no keyword argument 'z'"),
        ("{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}", "Jinja error: macro 'm' takes no keyword argument 'a'"),
        (
            "{% macro m(a) %}{% endmacro %}{% call m(1) %}x{% endcall %}",
            "Jinja error: macro 'm' takes no keyword argument 'caller'",
        ),
        (
            "{% macro m() %}{{ caller(1) }}{% endmacro %}{% call m() %}{% endcall %}",
            "Jinja error: macro None takes not more than 0 argument(s)",
        ),
        ("{% macro m(a) %}{{ a }}{% endmacro %}{{ m() }}", "Jinja variable parameter 'a' was not provided"),
        ("{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "Jinja variable No caller defined"),
        ("{{ caller() }}", "Jinja variable 'caller' is undefined"),
    ]);
}

#[test]
fn errors_name_the_type() {
    check_errors(&[
        ("{{ 1.5.upper() }}", "Jinja variable 'float object' has no attribute 'upper'"),
        ("{{ cycler(1).nope() }}", "Jinja variable 'jinja2.utils.Cycler object' has no attribute 'nope'"),
        ("{{ range(2).append(1) }}", "Jinja variable 'range object' has no attribute 'append'"),
        ("{{ range('a') }}", "Jinja error: 'str' object cannot be interpreted as an integer"),
        ("{{ range(1, 2, 0) }}", "Jinja error: range() arg 3 must not be zero"),
        ("{{ true[1:] }}", "Jinja error: 'bool' object is not subscriptable"),
        ("{{ {}[1:] }}", "Jinja error: unhashable type: 'slice'"),
        ("{{ 1.5 | length }}", "Jinja error: object of type 'float' has no len()"),
        ("{{ none | first }}", "Jinja error: 'NoneType' object is not iterable"),
        ("{{ true | last }}", "Jinja error: 'bool' object is not reversible"),
        ("{{ none | union([1]) }}", "Jinja error: unsupported operand type(s) for +: 'NoneType' and 'list'"),
        ("{{ true(1) }}", "Jinja error: 'bool' object is not callable"),
    ]);
}

#[test]
fn filters_refuse_undefined_values_and_wrong_types() {
    check(&[
        ("{{ true | abs }} {{ true | round }} {{ 1.7 | to_num }} {{ '1.7' | to_num }} {{ 2 | avg }}", "1 1 1 1.7 2.0"),
        (
            "{{ true | filesizeformat }} {{ 999.9 | filesizeformat }} {{ 1500 | filesizeformat }}",
            "1 Byte 999 Bytes 1.5 kB",
        ),
        (
            "{{ 1 < 1.5 }} {{ 0.5 < true }} {{ true is lt(1) }} {{ 1 // 0.1 }} {{ 7.5 // -2 }}",
            "True True False 9.0 -4.0",
        ),
        ("{{ range(3) | reverse | list }} {{ range(3) | last }} {{ {'a': 1} | last }}", "[2, 1, 0] 2 a"),
        (
            "{{ [3, 1] | sort(true) }} {{ 0 | quote }} {{ [1, [2]] | to_entries | length }} {{ 'ab' | flatten }}",
            "[3, 1] '' 2 ['a', 'b']",
        ),
        ("{% for c in 'ab' %}{{ c }}{{ loop.last }}{{ loop.length }}{% endfor %}", "aFalse2bTrue2"),
        (
            "{{ 1, 2 }} {{ 1, }} {{ 'x=%d' % 2.9 }} {{ 'a%s' | format(1) }} {{ '%(b)s' | format(b=2) }}",
            "(1, 2) (1,) x=2 a1 2",
        ),
        (
            "{{ [1, '10.0.0.1'] | ipaddr }} {{ 5 | ipaddr }} {{ 'a' | network_hosts }}",
            "['0.0.0.1', '10.0.0.1'] None None",
        ),
        (
            "{{ 1 | method_call('upper') }} {{ 1 is filter }} {{ 'upper' is filter }} {{ 'odd' is test }}",
            "None False True True",
        ),
        ("{{ \"'\" + (1 | json) }} {{ ['a' | json] }}", "&#39;1 [Markup('\"a\"')]"),
        ("{% macro m(a, b=1) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, a=2) }}", "(){'a': 2}"),
        ("{{ ['', '/nope'] | map('is_empty') | list }}", "[False, False]"),
    ]);
    for filter in [
        "replace('a', 'b')",
        "wordcount",
        "escape",
        "urlencode",
        "yaml_dquote",
        "center",
        "truncate",
        "unique",
        "is_ip",
    ] {
        check_errors(&[(&format!("{{{{ nope | {filter} }}}}"), "Jinja variable 'nope' is undefined")]);
    }
    check_errors(&[
        ("{{ [] | abs }}", "Jinja error: bad operand type for abs(): 'list'"),
        ("{{ 'a' | round }}", "Jinja error: type str doesn't define __round__ method"),
        ("{{ [1, 'a'] | sum }}", "Jinja error: unsupported operand type(s) for +: 'int' and 'str'"),
        ("{{ [] | min }}", "Jinja error: min() arg is an empty sequence"),
        ("{{ 1 | quote }}", "Jinja error: expected string or bytes-like object, got 'int'"),
        ("{{ {} | load_yaml }}", "Jinja error: a string or stream input is required"),
        ("{{ 1 | load_json }}", "Jinja syntax error: Unable to load json from 1"),
        ("{{ 1 | indent }}", "Jinja error: unsupported operand type(s) for +=: 'int' and 'str'"),
        ("{{ 1 | truncate }}", "Jinja error: object of type 'int' has no len()"),
        ("{{ 1 | reverse }}", "Jinja syntax error: argument must be iterable"),
        ("{{ [1, 2] | groupby('a') }}", "Jinja variable 'int object' has no attribute 'a'"),
        ("{{ 'a' | union([1]) }}", "Jinja error: can only concatenate str (not \"list\") to str"),
        ("{{ 'a' | format(1) }}", "Jinja error: not all arguments converted during string formatting"),
        ("{{ '%d' % 'a' }}", "Jinja error: %d format: a real number is required, not str"),
        ("{{ 'no date' | strftime }}", "Jinja error: Unable to parse no date"),
        ("{{ none | set_dict_key_value('a:b', 1) }}", "Jinja error: argument of type 'NoneType' is not iterable"),
        ("{{ {'a': 1} | attr('a') }}", "Jinja variable 'dict object' has no attribute 'a'"),
        ("{{ '' | first }}", "Jinja variable No first item, sequence was empty."),
        ("{{ grains[[] | first] }}", "Jinja variable No first item, sequence was empty."),
        ("{{ 1 if grains[[] | last] == 2 else 3 }}", "Jinja variable No last item, sequence was empty."),
        ("{{ salt['test.broken']([] | random) }}", "Jinja variable No random item, sequence was empty."),
        ("{{ ([] | first).x }}", "Jinja variable No first item, sequence was empty."),
        ("{{ 'a' | upper(1) }}", "Jinja error: do_upper() takes 1 positional argument but 2 were given"),
        ("{{ 'a'.replace('b') }}", "Jinja error: replace expected at least 2 arguments, got 1"),
        ("{{ [1] | map('nope') }}", "Jinja syntax error: No filter named 'nope'."),
        ("{{ [1] | select(\"nope\") }}", "Jinja syntax error: No test named 'nope'."),
        ("{% if true %}{{ 1 | nope }}{% endif %}", "Jinja syntax error: No filter named 'nope' found."),
        ("{{ 2 if 1 is nope else 3 }}", "Jinja syntax error: No test named 'nope' found."),
        ("{% macro m() %}{{ 1 is nope }}{% endmacro %}x", "Jinja syntax error: No test named 'nope'."),
        ("{% for x in [] %}{{ x | nope }}{% endfor %}", "Jinja syntax error: No filter named 'nope'."),
        ("{{ dict('ab') }}", "Jinja error: dictionary update sequence element #0 has length 1; 2 is required"),
        ("{% include 5 %}", "Jinja error: 'int' object is not iterable"),
        ("{% include ['nope', 'nope2'] %}", "Jinja error: none of the templates given were found: nope, nope2"),
        ("{{ super() }}", "Jinja variable 'super' is undefined"),
        ("{{ 'a'.join(5) }}", "Jinja error: can only join an iterable"),
        ("{{ '{:>5} {!r}'.format(1, 2) }}", "Jinja error: the conversion '!r' is not supported: use '%r' % value"),
        ("{{ '{a[0]!s:>5}'.format(a=[1]) }}", "Jinja error: the conversion '!s' is not supported: use '%s' % value"),
    ]);
}

#[test]
fn exclamation_marks_in_texts_are_no_conversions() {
    check(&[("{{ '{{!r}} {}! {a:!>3}!'.format(1, a=2) }}", "{!r} 1! !!2!")]);
}

#[test]
fn methods_are_attributes() {
    check(&[
        ("{{ {'a': 1} | attr('items') is defined }} {{ {'a': 1} | attr('a') is defined }}", "True False"),
        (
            "{{ 'a' | attr('upper')() }} {{ {'a': 1} | attr('get')('b', 2) }} {{ ('a,b' | attr('split'))(',') }}",
            "A 2 ['a', 'b']",
        ),
        ("{% set l = [1] %}{% set add = l | attr('append') %}{% do add(2) %}{{ l }}", "[1, 2]"),
        (
            "{{ [1] | attr('append') is callable }} {{ 1 | attr('upper') is defined }} {{ none | attr('x') is defined }}",
            "True False False",
        ),
        (
            "{{ grains.items is defined }} {{ data.list.append is defined }} {{ data.list.items is defined }}",
            "True True False",
        ),
        (
            "{{ data.keys is callable }} {{ 'a'.strip is undefined }} {{ {'items': 5}.items is callable }}",
            "True False True",
        ),
        ("{{ data['items'] is defined }} {{ data.id is defined }} {{ salt.nope is defined }}", "True True False"),
        (
            "{{ data['nope'] is defined }} {{ data['keys'] is callable }} {{ data['id'] is callable }}",
            "False True False",
        ),
        (
            "{{ data.list['append'] is defined }} {{ data.list['nope'] is defined }} {{ data.list[nope] is defined }}",
            "True False False",
        ),
        ("{{ 'a'['upper'] is defined }} {{ 'a'[nope] is defined }} {{ data.list[0] is defined }}", "True False True"),
        (
            "{{ none['x'] is defined }} {{ (1)['bit_length'] is defined }} {{ data[none] is defined }}",
            "False True False",
        ),
        ("{{ (1).bit_length is defined }} {{ (1).real is defined }} {{ (1).nope is defined }}", "True True False"),
        ("{{ (1.5).is_integer is callable }} {{ true.real is defined }} {{ (1).real is callable }}", "True True False"),
    ]);
    check_errors(&[
        ("{{ nope.items is defined }}", "Jinja variable 'nope' is undefined"),
        ("{{ data[nope] is defined }}", "Jinja variable 'nope' is undefined"),
        ("{{ nope['items'] is defined }}", "Jinja variable 'nope' is undefined"),
        ("{{ data.nope.items is defined }}", "Jinja variable 'dict object' has no attribute 'nope'"),
        ("{{ {} | attr('a')() }}", "Jinja variable 'dict object' has no attribute 'a'"),
        (
            "{% for x in data | attr('items') %}{% endfor %}",
            "Jinja error: 'builtin_function_or_method' object is not iterable",
        ),
    ]);
}

#[test]
fn filters_take_arguments_by_name() {
    check(&[
        (
            "{{ 'abc' | regex_replace(rgx='b', val='x') }} {{ 'aBc' | regex_replace('b', val='x', ignorecase=True) }}",
            "axc axc",
        ),
        (
            "{{ 'abc' | regex_match(rgx='(a)b') }} {{ 'abC' | regex_search(rgx='c', ignorecase=True) }} {{ 'abc' is match(rgx='a') }} {{ 'abc' is match('B', ignorecase=True) }}",
            "('a',) ('C',) True False",
        ),
        (
            "{{ {'a': {'b': 2}} | traverse(key='a:b') }} {{ {'a': {'b': 2}} | traverse(key='a/c', default=3, delimiter='/') }}",
            "2 3",
        ),
        ("{{ {'a': {'b': 2}} | json_query(expr='a.b') }}", "2"),
        (
            "{{ 's' | hmac(shared_secret='k', challenge_hmac='x') }} {{ 's' | hmac_compute(shared_secret='k') }}",
            "False a754f4059b0a4c0a4abf6568ea186538b7f2dc236ba3cdfd92492e37f066fe8d",
        ),
        ("{{ 0 | strftime(format='%Y') }} {{ 0 | date_format(format='%Y') }}", "1970 1970"),
        (
            "{{ [1] | compare_lists(new=[2]) }} {{ {'a': 1} | compare_dicts(new={'a': 2}) }}",
            "{'new': [2], 'old': [1]} {'a': {'old': 1, 'new': 2}}",
        ),
        ("{{ 'a' | substring_in_list(list_to_search=['xa']) }} {{ [1, 1] | exactly_n_true(amount=2) }}", "True True"),
        (
            "{{ {} | set_dict_key_value(keys='a:b', value=1) }} {{ {} | append_dict_key_value(keys='a/b', value=1, delimiter='/') }} {{ {} | update_dict_key_value('a', value={'x': 1}) }} {{ {} | extend_dict_key_value('a', value=[1]) }}",
            "{'a': {'b': 1}} {'a': {'b': [1]}} {'a': {'x': 1}} {'a': [1]}",
        ),
        (
            "{{ '192.168.0.1' | is_ip(options='private') }} {{ '8.8.8.8' | is_ip(options='private') }} {{ '8.8.8.8' | is_ipv4('public') }} {{ '::1' | is_ipv6(options='lo') }} {{ '8.8.8.8' | is_ipv6 }}",
            "True False True True False",
        ),
        (
            "{{ '192.168.0.0/30' | network_hosts(options='private') }} {{ '8.8.8.0/30' | network_hosts(options='private') }} {{ '8.8.8.0/30' | network_size(version=6) }} {{ ['::/127', '8.8.8.0/30'] | network_size(version=4) }}",
            "['192.168.0.1', '192.168.0.2'] None None [4]",
        ),
        ("{{ 'a,b' | method_call('split', sep=',') }} {{ 'a,b' | method_call(f_name='upper') }}", "['a', 'b'] A,B"),
        (
            "{{ [1, 2] | union(lst2=[3]) }} {{ [1, 2] | intersect(lst2=[2]) }} {{ [1, 2] | difference(lst2=[2]) }} {{ [1, 2] | symmetric_difference(lst2=[2, 3]) }}",
            "[1, 2, 3] [2] [1] [1, 3]",
        ),
        (
            "{{ [1, 2] | combinations(r=2) | list }} {{ [1, 2] | permutations(r=1) | list }} {{ [1, 2] | compress(selectors=[0, 1]) | list }}",
            "[(1, 2)] [(1,), (2,)] [2]",
        ),
        ("{{ ['| a |', '| 1 |'] | mysql_to_dict(key='a') }}", "{1: {'a': 1}}"),
        (
            "{{ '169.254.0.1' | ipaddr(options='ll') }} {{ 'fec0::1' | ipaddr('sl') }} {{ '240.0.0.1' | ipaddr('reserved') }} {{ '100::1' | ipaddr('reserved') }} {{ 'fe80::1' | ipaddr('reserved') }} {{ '8.8.8.8' | ipaddr('nonsense') }} {{ 'fd00::1' | ipaddr('reserved') }} {{ 'fe00::1' | ipaddr('reserved') }}",
            "169.254.0.1 fec0::1 240.0.0.1 100::1 None 8.8.8.8 None fe00::1",
        ),
        ("{{ 'a/' | path_join('../b') }} {{ 'a//b' | path_join('c/') }}", "b a/b/c"),
        (
            "{{ ['1.2.3.4'] | filter_by_networks(networks=['1.2.0.0/16']) }} {{ {'a': 1} | xmlattr(autospace=False) }}",
            "['1.2.3.4'] a=\"1\"",
        ),
        (
            "{{ 0 | rand_str }} {{ 0 | random_hash(hash_type='sha1') }} {{ [1] | random_sample(size=1) }} {{ 7 | random_hash(hash_type='sha1') | length }}",
            "cfcd208495d565ef66e7dff9f98764da b6589fc6ab0dc82cf12099d1c2d40ab994e8410c [1] 40",
        ),
        (
            "{{ 'a/' | path_join('../b') }} {{ '/' | path_join('..', 'b//c/') }} {{ 'a' | path_join('/b') }} {{ '' | path_join('') }} {{ '//x' | path_join('.') }} {{ 'a' | path_join('../../b') }} {{ '..' | path_join('..') }}",
            "b /b/c a/b . //x ../b ../..",
        ),
    ]);
    check_errors(&[
        (
            "{{ 'abc' | regex_replace(rgx='b', wrong='x') }}",
            "Jinja error: regex_replace() got an unexpected keyword argument 'wrong'",
        ),
        (
            "{{ 's' | hmac_compute(secret='k') }}",
            "Jinja error: hmac_compute() got an unexpected keyword argument 'secret'",
        ),
    ]);
}
