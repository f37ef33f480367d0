//! Results of filters, recorded with Salt 3008.5.

use super::{check, check_errors};

#[test]
fn expressions_mean_what_they_mean_in_python() {
    check(&[
        ("{{ 'x=1\n' | regex_replace('1$', '2') }}", "x=2\n"),
        ("{{ 'aaa' | regex_replace('a*', '-') }} {{ 'a x' | regex_replace('\\\\s*', '_') }}", "-- _a__x_"),
        ("{{ 'x=1\n' | regex_search('(1)$') }} {{ 'x\n' | regex_match('x$') }}", "('1',) ('x',)"),
        ("{{ 'x\n' is match('x$') }} {{ 'x' | regex_search('[[:alpha:]]') }}", "True None"),
        ("{{ 'x' | regex_replace('(x)', '\\\\101\\\\1') }}", "Ax"),
    ]);
    check_errors(&[
        ("{{ 'y' | regex_replace('(x)', '\\\\2') }}", "Jinja error: invalid group reference 2 at position 1"),
        ("{{ 'y' | regex_replace('(x)', '\\\\g<n>') }}", "Jinja error: unknown group name 'n'"),
        ("{{ 'x' | regex_replace('x', '\\\\x41') }}", "Jinja error: bad escape \\x at position 0"),
        ("{{ 'x' | regex_search('\\\\h') }}", "Jinja error: bad escape \\h at position 0"),
        ("{{ 'a' | regex_replace('(', 'x') }}", "Jinja error: missing ), unterminated subpattern at position 0"),
    ]);
}

#[test]
fn filters_have_the_results_of_salt() {
    check(&[
        ("{{ ['a','B'] | max }} {{ ['a','B'] | min }} {{ ['B','b'] | max }} {{ 'aB' | max }}", "a B b a"),
        (
            "{{ {'a': 1, 'B': 2} | max }} {{ [1, 2.5] | max }} {{ [[1, 2], [3]] | max }} {{ [none] | max }}",
            "a 2.5 [3] None",
        ),
        (
            "{{ 2.675 | round(2) }} {{ 1.005 | round(2) }} {{ 42.55 | round(1) }} {{ 0.285 | round(2) }}",
            "2.67 1.0 42.5 0.28",
        ),
        (
            "{{ 0.125 | round(2) }} {{ 0.375 | round(2) }} {{ -2.675 | round(2) }} {{ 2.5 | round }}",
            "0.12 0.38 -2.67 2.0",
        ),
        (
            "{{ 2.1234567890123 | round(20) }} {{ 1e300 | round(2) }} {{ 0.1 | round(400) }}",
            "2.1234567890123 1e+300 0.1",
        ),
        (
            "{{ 1250.0 | round(-2) }} {{ 1350 | round(-2) }} {{ 2.675 | round(2, 'ceil') }} {{ 5 | round(1) }}",
            "1200.0 1400 2.68 5",
        ),
        ("{{ 'fe80::1%lo' | is_ip }} {{ 'fe80::1%lo' | is_ipv4 }} {{ 'fe80::1%lo' | ipv6 }}", "True False fe80::1%lo"),
        ("{{ ['fe80::1%lo', 'x'] | ipaddr }} {{ 'FE80::0:1%Lo' | ipaddr }}", "['fe80::1%lo'] fe80::1%Lo"),
        ("{{ 'fe80::1%' | is_ip }} {{ 'fe80::1%a%b' | is_ip }} {{ '1.2.3.4%lo' | is_ip }}", "False False False"),
        ("{{ 'fe80::1%lo/64' | ipaddr }} {{ 'fe80::1%lo' | ipwrap }}", "fe80::1%lo/64 [fe80::1%lo]"),
        ("{{ 'fe80::1%lo' | is_ip('link_local') }} {{ 'fe80::1%lo' | is_ip('global') }}", "True False"),
        ("{{ 'getHTTPResponse2x' | to_snake_case }} {{ 'XMLHttp' | to_snake_case }}", "get_http_response2x xml_http"),
        (
            "{{ ['inf' | float, '-inf' | float, 'nan' | float] | json }} {{ 'inf' | float | tojson }}",
            "[Infinity, -Infinity, NaN] Infinity",
        ),
        (
            "{{ {'inf' | float: 1} | json }} {{ ['@Infinity', 'inf' | float] | json }}",
            "{\"Infinity\": 1} [\"@Infinity\", Infinity]",
        ),
        ("{{ {'a': 'inf' | float} | json(indent=2) }}", "{\n  \"a\": Infinity\n}"),
        ("{{ 'My Name' | to_snake_case }} {{ 'get2HTTPx' | to_snake_case }}", "my _name get2htt_px"),
        ("{{ 'aBCd_EfG' | to_snake_case }} {{ 'x1Y2Z' | to_snake_case }}", "a_b_cd__ef_g x1y2z"),
        (
            "{{ {'k': '😀', 'e': 'é'} | yaml }} {{ {'😀': 1} | yaml }}",
            "{e: é, k: \"\\U0001F600\"} {\"\\U0001F600\": 1}",
        ),
        (
            "{{ {'k': 'a😀: b'} | yaml(False) }} {{ ['é😀 \"x\"'] | yaml }}",
            "k: \"a\\U0001F600: b\" [\"é\\U0001F600 \\\"x\\\"\"]",
        ),
    ]);
    check_errors(&[
        ("{{ [] | max }}", "Jinja error: max() arg is an empty sequence"),
        ("{{ [none, 1] | max }}", "Jinja error: '>' not supported between instances of 'int' and 'NoneType'"),
        ("{{ '' | to_snake_case }}", "Jinja error: string index out of range"),
    ]);
}

#[test]
fn functions_that_change_their_argument_replace_what_they_do_not_merge() {
    let change = "{% do salt['defaults.merge'](d, {}) %}{{ d }}";
    check(&[
        (&format!("{{% set d = {{'in': {{'c': 3}}}} %}}{change}"), "{'in': {'b': 2}, 'a': 1}"),
        (
            &format!("{{% set d = {{'in': {{'b': 3}}}} %}}{{% set i = d.in %}}{change} {{{{ i }}}}"),
            "{'in': {'b': 2}, 'a': 1} {'b': 2}",
        ),
        (
            &format!("{{% set d = {{'in': {{'c': 3}}}} %}}{{% set i = d.in %}}{change} {{{{ i }}}}"),
            "{'in': {'b': 2}, 'a': 1} {'c': 3}",
        ),
    ]);
}
