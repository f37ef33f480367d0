//! What Python does with values of all types, and what it says of what it does not do.

use super::{check, check_errors};

#[test]
fn what_is_no_data_prints_as_in_python() {
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
fn chains_and_tests_compare_as_operators_do() {
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
fn macros_refuse_what_they_have_no_parameter_for() {
    check(&[
        ("{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=3) }}{{ m(b=4, a=5) }}", "121354"),
        ("{% macro m() %}<{{ caller(1) }}>{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}", "<1>"),
    ]);
    check_errors(&[
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
