//! The grammar, its error messages, and rewritten templates.

use super::*;

/// Parses a template; all names are known.
fn parse(source: &str) -> Document {
    Document::parse(source, None, &|_, _| true)
}

fn rewrite(source: &str) -> String {
    emit(&parse(source), Purpose::Render).text
}

#[test]
fn only_unsupported_syntax_is_rewritten() {
    for (written, becomes) in [
        ("{{ a[0] }} [x] {y} {# {{ [1] }} #}", "{{ a[0] }} [x] {y} {# {{ [1] }} #}"),
        ("{{ [1, [2]] }}", "{{ __list__([1, __list__([2])]) }}"),
        ("{{\u{a0}a\u{a0}~ '\u{a0}'\u{a0}}}", "{{ __concat__(a , '\u{a0}') }}"),
        ("{{ {'a': {}}['a'] }}", "{{ __dict__({'a': __dict__({})})['a'] }}"),
        ("{% if x in ['a'] %}", "{% if __in__(x , ['a']) %}"),
        ("{% if x not in y|f %}", "{% if (not __in__(x ,  y|f)) %}"),
        ("{{ '}} %} [' }}{{ [1] }}", "{{ '}} %} [' }}{{ __list__([1]) }}"),
        ("{% raw %}{{ [1] }}{%- endraw -%}{{ [1] }}", "{% raw %}{{ [1] }}{%- endraw -%}{{ __list__([1]) }}"),
        ("{% set x = y + [1] %}", "{% set x = __own__(__add__(y , __list__([1]))) %}"),
        ("{% set a, b = 1, 2 %}", "{% set a, b = 1, 2 %}"),
        ("{% set x %}[1]{% endset %}", "{% set x %}[1]{% endset %}"),
        ("{%- do x.append(1) -%}", "{%- set __do__ = x.append(1) -%}"),
        ("{{ '%s-%s' % (a, b.c[0]) }}", "{{ __mod__('%s-%s' , (a, b.c[0])) }}"),
        ("{% if not a|int < b.c[1] + 2 and d %}", "{% if not __lt__(a|int , __add__(b.c[1] , 2)) and d %}"),
        ("{{ f(x=a >= 2, y=[1 > n]) }}", "{{ f(x=__ge__(a , 2), y=__list__([__gt__(1 , n)])) }}"),
        ("{{ 'a' if b is not none and c <= d else e }}", "{{ 'a' if b is not none and __le__(c , d) else e }}"),
        ("{{ [1] < [2] }}", "{{ __lt__(__list__([1]) , __list__([2])) }}"),
        ("{% set x = a < 1 %}", "{% set x = __own__(__lt__(a , 1)) %}"),
        ("{{ 1 < 2 not in 3 }}", "{{ __chain__(1 , '<', 2 , 'not in',  3) }}"),
        ("{{ -a - -1 ** 2 }}", "{{ __sub__(__neg__(a) , __pow__((-1) , 2)) }}"),
        ("{{ 'a' 'b' * 2 }}", "{{ __mul__(('a' ~ 'b') , 2) }}"),
        ("{{ a[1:] }}{{ a[::-1] }}", "{{ __slice__(a, 1, none) }}{{ __slice__(a, none, none, (-1)) }}"),
        ("{{ a ~ b + c }}", "{{ __add__(__concat__(a , b) , c) }}"),
        (
            "{% for a, b in c %}{% set d, e = f %}",
            "{% for a, b in __each_of__(2, c) %}{% set d, e = __unpack__(2, f) %}",
        ),
        ("{% for x in l if x > 1 %}", "{% for x in __each__(l) if __gt__(x , 1) %}"),
        (
            "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro -%}",
            "{% macro m(a, varargs=(), kwargs=none) %}{{ a }}{{ varargs }}{% endmacro %}{% set m = __macro__(m, true) -%}",
        ),
        (
            "{% macro m(a, b = [a], c=b) -%}",
            "{% macro m(a, b, c) %} {%- if b is undefined %}{% set b = __list__([a]) %}{% endif %} {%- if c is undefined %}{% set c=b %}{% endif -%}",
        ),
        ("{% load_yaml as x -%}a{% endload %}", "{% set  x | __load_yaml__ -%}a{% endset %}"),
        (
            "{%- import_yaml 'f' as x with context %}",
            "{%- set x | __load_yaml__ %}{% with %}{% include __template__('f', true) %}{% endwith %}{% endset %}",
        ),
        ("{% from './l' import a, b %}", "{% from __template__('./l', false) import a, b %}"),
        (
            "{% import t ~ '/l' as l with context -%}",
            "{% import __template__(__concat__(t , '/l'), true) as l with context -%}",
        ),
        (
            "{% include 'x' ignore missing %}",
            "{% with %}{% include __template__('x', true) ignore missing %}{% endwith %}",
        ),
        (
            "{% include a.b ~ '/c' %}",
            "{% with __names__ = [a] %}{% include __template__(__concat__(a.b , '/c'), true) %}{% endwith %}",
        ),
        ("{{ loop(x.y) }}{{ a.loop(x) }}", "{{ loop(__each__(x.y)) }}{{ a.loop(x) }}"),
        ("{{ f(0600, 0, 00, 0.5, 10) }}", "{{ f(0 600, 0, 00, 0.5, 10) }}"),
        ("{{ x", "{{ x"),
        ("{{ [1 }}{{ [2] }}", "{{ [1 }}{{ [2] }}"),
    ] {
        assert_eq!(rewrite(written), becomes);
    }
}

#[test]
fn guarded_tags_print_and_capture_through_the_guard() {
    for (written, becomes) in [
        ("{{ a }} {{- b.c -}}", "{{ __guard__((a), 7, 0) }} {{- __guard__((b.c), 7, 1) -}}"),
        ("{{ a + 1 }}{{ a, b }}", "{{ __guard__((__add__(a , 1)), 7, 0) }}{{ __guard__(((a, b)), 7, 1) }}"),
        ("{% raw %}{{ a }}{% endraw %}{{ b }}", "{% raw %}{{ a }}{% endraw %}{{ __guard__((b), 7, 0) }}"),
        (
            "{% macro m() %}{{ kwargs }}{% endmacro %}",
            "{% macro m(varargs=(), kwargs=none) %}{{ __guard__((kwargs), 7, 0) }}{% endmacro %}{% set m = __guard__.macro(__macro__(m, true)) %}",
        ),
        ("{% set x %}{% endset %}", "{% set x | __captured__(__guard__) %}{% endset %}"),
        ("{% set y = 1 %}", "{% set y = 1 %}"),
        ("{% load_yaml as x -%}{% endload %}", "{% set  x | __load_yaml__(__guard__) -%}{% endset %}"),
        (
            "{% import_json 'f' as x %}",
            "{% set x | __load_json__(__guard__) %}{% with %}{% include __template__('f', false) %}{% endwith %}{% endset %}",
        ),
        ("{% set x | f(a=1) %}{% endset %}", "{% set x | __uncover__(__guard__) | f(a=1) %}{% endset %}"),
        (
            "{% filter f %}{% endfilter %}",
            "{% filter __uncover__(__guard__) | f | __cover__(__guard__, 7, 0) %}{% endfilter %}",
        ),
        ("{% call m(a, (b)) %}{% endcall %}", "{% call __guard__.block(m)(a, (b)) %}{% endcall %}"),
        ("{% call(x, y=()) l.m() -%}{% endcall %}", "{% call(x, y=()) __guard__.block(l.m)() -%}{% endcall %}"),
    ] {
        let guard = Purpose::Guard { id: 7, is_guarded: &|_| true };
        assert_eq!(emit(&parse(written), guard).text, becomes);
    }
}

#[test]
fn lookups_are_recorded_for_a_diagnosis() {
    for (written, becomes) in [
        ("{{ a.b['c'] }}", "{{ __item__(__attribute__(a,'b'),'c') }}"),
        ("{{ a.b.c(d.e) }}", "{{ __attribute__(a,'b').c(__attribute__(d,'e')) }}"),
        ("{{ a[1:].b }}", "{{ __attribute__(__slice__(a, 1, none),'b') }}"),
        ("{{ a.b.c is defined }}", "{{ __tested__(__attribute__(a,'b'),'c') is defined }}"),
    ] {
        assert_eq!(emit(&parse(written), Purpose::Diagnose).text, becomes);
    }
}

#[test]
fn printing_tags_know_their_lines() {
    let source = "{# {{ x }} #}\n{{ a }}\n\n{% filter f %}{{\nb }}{% endfilter %}\n{{ c }}";
    let expected = [(2, "{{ a }}"), (4, "{% filter f %}"), (4, "{{\nb }}"), (6, "{{ c }}")];
    assert_eq!(parse(source).printing(), expected);
}

#[test]
fn positions_map_to_the_source() {
    for (source, emitted, expected) in [
        ("ab {{ x + y.z }}!", "y.z", "y.z"),
        ("ab {{ x + y.z }}!", "__add__", "x +"),
        ("ab {{ x + y.z }}!", "}}!", "}}!"),
        ("{% set x = y %}", "__own__", "y %"),
        ("{% include 'f' %}-", "__template__", "'f'"),
        ("\u{a0}{{\u{a0}a ~ b }}", "a , b", "a ~"),
        ("{% import_yaml 'f' ~ x as y %}", "x)", "x as"),
    ] {
        let document = parse(source);
        let Emitted { text, map } = emit(&document, Purpose::Render);
        let at = map.source(text.find(emitted).unwrap());
        assert!(source[at..].starts_with(expected), "{source}: {emitted} is at {at}");
    }
}

#[test]
fn the_options_line_does_not_shift_positions() {
    let source = "#!x\n#jinja2: {}\nab {{ x }}";
    let document = Document::parse(source, Some((4, 16)), &|_, _| true);
    let Emitted { text, map } = emit(&document, Purpose::Render);
    assert_eq!(text, "#!x\nab {{ x }}");
    assert_eq!(map.source(text.find("x }}").unwrap()), source.find("x }}").unwrap());
}

#[test]
fn syntax_errors_match_jinja() {
    for (source, message, at) in [
        (
            "{% if true %}",
            "Unexpected end of template. Jinja was looking for the following tags: 'elif' or 'else' or 'endif'. The innermost block that needs to be closed is 'if'.",
            1,
        ),
        ("\n{% endif %}", "Encountered unknown tag 'endif'.", 2),
        ("{{ a b }}", "expected token 'end of print statement', got 'b'", 1),
        ("{{ a", "unexpected end of template, expected 'end of print statement'.", 1),
        ("é{{ 'abc }}", "unexpected char \"'\" at 4", 1),
        ("{{ [1, 2 }}", "unexpected '}', expected ']'", 1),
        ("{{ (1, 2 }}", "unexpected '}', expected ')'", 1),
        ("{{ 1 +  }}", "unexpected 'end of print statement'", 1),
        ("{{ a. }}", "expected name or number", 1),
        ("{{ a | }}", "expected token 'name', got 'end of print statement'", 1),
        ("{% set %}", "Expected an expression, got 'end of statement block'", 1),
        ("{% for in y %}{% endfor %}", "expected token 'in', got 'y'", 1),
        ("{% call foo %}{% endcall %}", "expected call", 1),
        ("a\n{{ a ? b }}", "unexpected char '?' at 7", 2),
        ("{# a\n", "Missing end of comment tag", 1),
        ("{% raw %}\n", "Missing end of raw directive", 1),
        (
            "{% for x in y %}{% if x %}{% endfor %}{% endif %}",
            "Encountered unknown tag 'endfor'. You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for 'elif' or 'else' or 'endif'. The innermost block that needs to be closed is 'if'.",
            1,
        ),
    ] {
        assert_eq!(parse(source).error(), Some((message, at)), "{source}");
    }
}

#[test]
fn valid_templates_have_no_errors() {
    for source in [
        "{{ a if b }}{{ a if b else c, d }}{{ () }}{{ (1,) }}{{ {'a': 1,}['a'][::2, 1:] }}{{ 'a' 'b' }}",
        "{% if not a is defined and b is divisibleby 3 or c is not none %}{% elif d %}{% else %}{% endif %}",
        "{% for a, (b, c) in d if e recursive %}{% break %}{% else %}{% endfor %}{{ - a ** 2 | f(1, *b, c=2, **d) }}",
        "{% set a, b = 1, 2 %}{% set a.b = 1 %}{% set a | upper %}{% endset %}{% macro m(a, b=1) %}{% endmacro %}",
        "{% call(x) m(1) %}{% endcall %}{% with a = 1, b = 2 %}{% endwith %}{% filter upper | e %}{% endfilter %}",
        "{% from 'a' import b, c as d with context %}{% import 'a' as b without context %}{% extends 'a' %}",
        "{% include ['a', 'b'] ignore missing with context %}{% block a scoped %}{% endblock a %}{% do a.b(1) %}",
        "{% import_yaml 'a' as b %}{% load_yaml as a %}{% endload %}{% profile as 'a' %}{% endprofile %}",
    ] {
        assert_eq!(parse(source).error(), None, "{source}");
    }
}

#[test]
fn error_lines_match_jinja() {
    for (source, failed, line) in [
        ("{% set x = {\n 'a': b,\n} %}", "b,", 1),
        ("{{ f(\n a\n) }}", "a\n", 1),
        ("{{ a\n | upper }}\n{{ b }}", "a\n", 2),
        ("{{ a }}\n{{ b }}", "b", 2),
        ("{% set a = [\n1] %}{{ b }}", "b", 2),
    ] {
        assert_eq!(parse(source).reported_line(source.find(failed).unwrap()), line, "{source}");
    }
    for (source, failed, line) in
        [("{% set x = {\n 'a': b,\n} %}", 2, 1), ("{{ a\n | upper }}\n{{ b }}", 1, 2), ("{{ a }}\n{{ b }}", 2, 2)]
    {
        assert_eq!(parse(source).reported_line_of(failed), line, "{source}");
    }
}

#[test]
fn import_data_refuses_reserved_names() {
    for source in ["{% import_yaml 'a'%as b %}", "{% import_json a ~ as b %}"] {
        let error = crate::Template::compile("t", source).unwrap_err();
        assert!(error.to_string().contains("import_"), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn lines_are_kept(source in "([a-z.,'|=(\\[{}\\])\n -]|\\{%|%\\}|\\{\\{|\\}\\}|import_yaml|from|as|set|do){0,60}") {
        let lines = |text: &str| text.matches('\n').count();
        proptest::prop_assert_eq!(lines(&rewrite(&source)), lines(&source));
    }
}

#[test]
fn unknown_filters_and_tests_are_refused_unless_a_condition_decides() {
    let is_known = |called: Called, name: &str| match called {
        Called::Filter => name == "f",
        Called::Test => name == "t",
    };
    for (source, message) in [
        ("{{ x | f }} {{ x is t }} {{ x is not t }}", None),
        ("{{ x | f | nope }}", Some(("No filter named 'nope'.", 1))),
        ("{{ x is nope }}", Some(("No test named 'nope'.", 1))),
        ("{{ x is f }}", Some(("No test named 'f'.", 1))),
        ("a\n{% for x in [] %}\n{{ x | nope(1) }}{% endfor %}", Some(("No filter named 'nope'.", 3))),
        ("{% macro m() %}{{ x is a.b }}{% endmacro %}", Some(("No test named 'a.b'.", 1))),
        ("{% set x = y | nope %}", Some(("No filter named 'nope'.", 1))),
        // A branch may never be rendered.
        ("{{ x | nope if a else b }} {{ b if a is nope else x | nope }}", None),
        ("{{ [x if a else y] | nope }}", Some(("No filter named 'nope'.", 1))),
        (
            "{% if x is nope %}{{ y | nope }}{% elif x | nope %}{% set z = y | nope %}{% else %}{{ y | nope }}{% endif %}",
            None,
        ),
        ("{% if a %}{% for x in y | nope %}{% endfor %}{% endif %}", None),
        ("{% if a %}{% for x in y %}{{ x | nope }}{% endfor %}{% endif %}", Some(("No filter named 'nope'.", 1))),
        ("{% if a %}{% filter nope %}{% endfilter %}{% endif %}", Some(("No filter named 'nope'.", 1))),
        ("{% if a %}{% set x | nope %}{% endset %}{% endif %}", Some(("No filter named 'nope'.", 1))),
        ("{% for x in y %}{% if a %}{{ x | nope }}{% endif %}{% endfor %}", None),
        // An error of the syntax comes first.
        ("{{ x | nope }}\n{{ + }}", Some(("unexpected 'end of print statement'", 2))),
    ] {
        assert_eq!(Document::parse(source, None, &is_known).error(), message, "{source}");
    }
}
