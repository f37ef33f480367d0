use super::*;

fn kinds(source: &str) -> Vec<String> {
    let view = View::of(source);
    view.facts.iter().map(|fact| format!("{} {:?}", &source[fact.span.clone()], fact.kind)).collect()
}

#[test]
fn facts_have_their_ranges() {
    for (source, expected) in [
        (
            "{% set a, b = c %}",
            vec!["a Assign { name: \"a\" }", "b Assign { name: \"b\" }", "c Use { name: \"c\", is_guarded: false }"],
        ),
        (
            "{{ grains['os'] }}{{ pillar.a['b'] | default(1) }}",
            vec![
                "grains['os'] Lookup { root: Grains, path: [\"os\"], has_default: false }",
                "pillar.a['b'] Lookup { root: Pillar, path: [\"a\", \"b\"], has_default: true }",
                "default Filter { name: \"default\", is_known: true }",
            ],
        ),
        (
            "{{ salt['x.y'](1, z=2) }}",
            vec![
                "'x.y' Call { function: \"x.y\", positional: 1, keywords: [(\"z\", 18..19)], is_open: false, is_guarded: false }",
            ],
        ),
        (
            "{% if q is defined %}{{ q }}{% endif %}",
            vec![
                "q Use { name: \"q\", is_guarded: true }",
                "defined Test { name: \"defined\", is_known: true }",
                "q Use { name: \"q\", is_guarded: true }",
            ],
        ),
        (
            "{% from 'a/m.jinja' import b as c, d with context %}",
            vec![
                "'a/m.jinja' Template { path: Some(\"a/m.jinja\"), by: From, names: [\"b\", \"d\"], may_be_missing: false }",
                "c Assign { name: \"c\" }",
                "d Assign { name: \"d\" }",
            ],
        ),
    ] {
        assert_eq!(kinds(source), expected, "{source}");
    }
}

#[test]
fn skeletons_take_one_branch_of_each_condition() {
    for (source, variant, expected) in [
        ("a: {{ b }}\n", 0, "a: \u{F0000}\n"),
        ("{% if a -%}\n  b\n{%- elif c %}d{% else %}e{% endif %}", 0, "b"),
        ("{% if a -%}\n  b\n{%- elif c %}d{% else %}e{% endif %}", 1, "d"),
        ("{% if a -%}\n  b\n{%- elif c %}d{% else %}e{% endif %}", 5, "e"),
        ("{% for x in y %}- {{ x }}\n{% else %}no{% endfor %}z", 0, "- \u{F0000}\nz"),
        ("{% set x %}a{% endset %}{% macro m() %}b{% endmacro %}c{# d -#} \n e", 0, "ce"),
        ("{% raw %}{{ a }}{% endraw %}", 0, "{{ a }}"),
        ("{% call m() %}a{% endcall %}b", 0, "\u{F0000}b"),
    ] {
        let skeleton = View::of(source).skeleton(variant, false);
        assert_eq!(skeleton.text, expected, "{source} {variant}");
    }
}

#[test]
fn positions_map_to_the_source() {
    let source = "{% if a %}x: {{ b }}y\n{% endif %}z: 1\n";
    let view = View::of(source);
    let skeleton = view.skeleton(0, false);
    for (text, expected) in
        [("x", "x"), ("\u{F0000}", "{{ b }}"), ("\u{F0000}y", "{{ b }}y"), ("z", "z"), ("x: \u{F0000}", "x: {{ b }}")]
    {
        let at = skeleton.text.find(text).unwrap();
        assert_eq!(&source[skeleton.range(&(at..at + text.len()))], expected);
    }
    assert!(view.are_together(11, 35) && View::of("{% if a %}b{% else %}c{% endif %}").are_together(10, 10));
    assert!(!View::of("{% if a %}b{% else %}c{% endif %}").are_together(10, 21));
}
