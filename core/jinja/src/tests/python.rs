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
        ("{{ 'a' | upper(1) }}", "Jinja error: do_upper() takes 1 positional argument but 2 were given"),
        ("{{ 'a'.replace('b') }}", "Jinja error: replace expected at least 2 arguments, got 1"),
        ("{{ [1] | map('nope') }}", "Jinja syntax error: No filter named 'nope'."),
        ("{{ dict('ab') }}", "Jinja error: dictionary update sequence element #0 has length 1; 2 is required"),
        ("{% include 5 %}", "Jinja error: 'int' object is not iterable"),
        ("{% include ['nope', 'nope2'] %}", "Jinja error: none of the templates given were found: nope, nope2"),
        ("{{ super() }}", "Jinja variable 'super' is undefined"),
        ("{{ 'a'.join(5) }}", "Jinja error: can only join an iterable"),
    ]);
}
