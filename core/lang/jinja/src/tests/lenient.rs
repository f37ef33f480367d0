//! Templates in which undefined values are empty.

use super::*;

fn rendered(source: &str) -> Result<String, JinjaError> {
    let template = Template::compile_sharing(&ImportCache::lenient(), "t", source)?;
    let mut context = Context::new("base");
    context.set("known", &map! {"a" => list![1]}.into()).set_functions_name("__salt__");
    context.set_with_traverse("__tools__", &map! {"path" => "/x"});
    template.render(&context, &host())
}

#[test]
fn undefined_values_are_empty_as_by_jinjas_default() {
    for (source, expected) in [
        ("[{{ nothing }}{{ known.b }}]", "[]"),
        ("{% if nothing %}a{% elif not known.b %}b{% endif %}", "b"),
        ("{% for x in known.b %}{{ x }}{% else %}none{% endfor %}", "none"),
        ("{{ 'x' ~ nothing ~ 'y' }} {{ nothing | default('d') }} {{ nothing is defined }}", "xy d False"),
        ("{{ nothing | length }} {{ 'x' in nothing }} {{ nothing in [1] }} {{ nothing == 1 }}", "0 False False False"),
        ("[{{ nothing | upper }}{{ nothing | join(',') }}{{ nothing | list }}]", "[[]]"),
    ] {
        assert_eq!(rendered(source).unwrap(), expected, "{source}");
    }
    for source in ["{{ nothing.a }}", "{{ known.b.c }}", "{{ nothing + 1 }}", "{{ nothing < 1 }}", "{{ nothing() }}"] {
        assert!(rendered(source).is_err(), "{source}");
    }
}

#[test]
fn renders_inside_and_after_a_lenient_one_are_strict_again() {
    assert_eq!(rendered("{{ nothing }}").unwrap(), "");
    let strict = Template::compile("t", "{{ nothing ~ 'x' }}").unwrap();
    assert!(strict.render(&Context::new("base"), &host()).is_err());
}

#[test]
fn functions_have_a_second_name_and_data_is_traversed() {
    for (source, expected) in [
        ("{{ __salt__['test.echo']('a') }}{{ salt['test.echo']('b') }}", "ab"),
        ("{{ __tools__.path }} {{ __tools__.traverse(known, 'a:0') }}", "/x 1"),
        ("{{ __tools__.traverse(known, 'b:0', 'd') }} {{ __tools__['traverse'](known, 'a/0', delimiter='/') }}", "d 1"),
    ] {
        assert_eq!(rendered(source).unwrap(), expected, "{source}");
    }
}
