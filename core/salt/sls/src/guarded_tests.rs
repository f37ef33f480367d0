//! Guarded renders from the template to the data.

use brine_function::{Args, CallError};
use brine_jinja::{Context, Files, FilesError, Functions, Host, Variables};
use brine_value::{Map, Value, list, map};
use proptest::prelude::*;

use crate::render::Sls;

const VARIABLES: Variables = Variables {
    trusted: &["opts", "grains"],
    untrusted: &["data", "tag"],
    from_minions: &["mine"],
    change_first: &["defaults.merge"],
};

/// A few functions and templates.
#[derive(Clone, Copy)]
struct Served(&'static [(&'static str, &'static str)]);

impl Functions for Served {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        match function {
            "test.echo" => Ok(args.positional.first().cloned().unwrap_or_default()),
            "test.glob" | "mine.get" => Ok("a*".into()),
            _ => Err(CallError::NotAvailable(function.to_owned())),
        }
    }

    fn has(&self, function: &str) -> bool {
        matches!(function, "test.echo" | "test.glob" | "mine.get")
    }

    fn has_module(&self, _module: &str) -> bool {
        true
    }
}

impl Files for Served {
    fn template(&self, path: &str, _: &str) -> Result<Option<String>, FilesError> {
        Ok(self.0.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned()))
    }
}

fn render_with(source: &str, data: Map, files: &'static [(&'static str, &'static str)]) -> Result<Value, String> {
    let host = Host::new().with_functions(Served(files)).with_files(Served(files));
    let mut context = Context::new("base");
    context.set("data", &data.into());
    context.set("tag", &"a/b".into());
    context.set("opts", &map! {"list" => list![1, 2], "port" => "80"}.into());
    let sls = Sls::compile_guarded("t.sls", source, "jinja|yaml", VARIABLES).map_err(|error| error.message())?;
    let (text, placeholders) = sls.render_guarded(&context, &host).map_err(|error| error.message())?;
    let located = sls.parse_guarded(&text, &placeholders).map_err(|error| error.message())?;
    let value = placeholders.resolve(located.value).map_err(|error| error.to_string())?;
    // No placeholder is left, regardless of its text.
    assert!(!placeholders.touches(&value.to_string()), "{value}");
    Ok(value)
}

fn render(source: &str, data: Map) -> Result<Value, String> {
    render_with(source, data, &[])
}

#[test]
fn harmless_text_is_unchanged() {
    for id in [
        "web1",
        "012",
        "1e3",
        "0x10",
        "null",
        "yes",
        "1_000",
        "2026-01-02",
        "~",
        "<<",
        "=",
        "-5",
        "1.5",
        "a b",
        "it's",
        "",
    ] {
        let expected: Value = map! {"match" => id}.into();
        for source in [
            "match: {{ data['id'] }}",
            "match: '{{ data.id }}'",
            "match: {{ data.id | yaml_encode }}",
            "match: {{ data.id | json }}",
        ] {
            if source.contains('\'') && id.contains('\'') {
                continue;
            }
            assert_eq!(render(source, map! {"id" => id}), Ok(expected.clone()), "{source} {id}");
        }
    }
    assert_eq!(render("{{ data.id }}: 1", map! {"id" => "012"}), Ok(map! {"012" => 1}.into()));
    assert_eq!(
        render("a: [x, '{{ data.id }}', {{ data.id }}-y]", map! {"id" => "w"}),
        Ok(map! {"a" => list!["x", "w", "w-y"]}.into())
    );
    assert_eq!(render("a: |\n  b {{ data.id }}\n", map! {"id" => "'w': #x"}), Ok(map! {"a" => "b 'w': #x\n"}.into()));
}

#[test]
fn values_other_than_strings_keep_their_types() {
    let data = map! {"n" => 5, "f" => 1.5, "b" => true, "none" => Value::Nil, "l" => list![1, "a"]};
    for (source, expected) in [
        ("a: {{ data.n }}", Value::from(map! {"a" => 5})),
        ("a: 80{{ data.n }}", map! {"a" => 805}.into()),
        ("a: '{{ data.n }}'", map! {"a" => "5"}.into()),
        ("a: {{ data.f }}", map! {"a" => 1.5}.into()),
        ("a: {{ data.b }}", map! {"a" => true}.into()),
        ("a: {{ data.none }}", map! {"a" => "None"}.into()),
        ("a: {{ data.l | json }}", map! {"a" => list![1, "a"]}.into()),
        ("a: {{ data.l | yaml }}", map! {"a" => list![1, "a"]}.into()),
        ("a: {{ data.l | length }}", map! {"a" => 2}.into()),
        ("a: {x: {{ data.l | tojson }}}", map! {"a" => map! {"x" => list![1, "a"]}}.into()),
        ("a: {{ data.n ~ '' }}", map! {"a" => "5"}.into()),
    ] {
        assert_eq!(render(source, data.clone()), Ok(expected), "{source}");
    }
    assert!(render("a: {{ data.l }}", data).unwrap_err().contains("`| json`"));
}

#[test]
fn text_that_would_change_the_structure_is_refused() {
    let hostile = [
        "\"*\" #_youshi",
        "'*' #x_youshi",
        "[p*] #x_youshi",
        "*x",
        "&x y",
        "!x",
        "x\n- y: z",
        "x\nlocal.cmd.run: {}",
        "x #y",
        "x: y",
        "{a: b}",
        "- x",
        "|",
        ">",
        "%x",
        "@x",
        "`x",
        " x",
        "x ",
        "---",
        "x\u{2028}y",
        "x\u{85}y",
        "x\0y",
        "x\ty",
        "? x",
    ];
    for id in hostile {
        for source in [
            "match: {{ data['id'] }}",
            "{% set id = data.id %}match: {{ id }}",
            "{% for x in [data.id] %}match: {{ x }}{% endfor %}",
            "{% set ns = namespace(id='') %}{% set ns.id = data.id %}match: {{ ns.id }}",
            "{% set l = [] %}{% do l.append(data.id) %}match: {{ l[0] }}",
            "{% set l = [] %}{% set other = l %}{% do other.append(data.id) %}match: {{ l[0] }}",
            "{% set d = {} %}{% do d.update({'id': data.id}) %}match: {{ d.id }}",
            "{% macro m(x) %}{{ x }}{% endmacro %}match: {{ m(data.id) }}",
            "{% macro m(x) %}match: {{ x }}{% endmacro %}{{ m(x=data.id) }}",
            "{% macro m() %}{{ caller(data.id) }}{% endmacro %}match: {% call(x) m() %}{{ x }}{% endcall %}",
            "{% macro put(l, x) %}{% do l.append(x) %}{% endmacro %}{% set l = [] %}{{ put(l, data.id) }}match: {{ l[0] }}",
            "{% set x %}{{ data.id }}{% endset %}match: {{ x }}",
            "{% filter replace('Q', '') %}match: {{ data.id }}{% endfilter %}",
            "{% with x = data.id %}match: {{ x }}{% endwith %}",
            "match: {{ data.id if data.id else 'x' }}",
            "match: {{ salt['test.echo'](data.id) }}",
            "match: {{ salt.test.echo(data.id) }}",
            "match: {{ data.id | safe }}",
            "match: {{ data.id | json | replace('\"', '') }}",
            "match: {{ data.get('id') }}",
            "match: {{ {'x': data.id}['x'] }}",
            "match: {{ data.values() | first }}",
            "match: {{ show_full_context()['data']['id'] }}",
            "{% load_yaml as x %}\nid: {{ data.id }}\n{% endload %}match: {{ x.id }}",
        ] {
            // JSON escapes these characters with letters, so that the text is harmless even without its quotes.
            if source.contains("| json |") && id.contains(['\0', '\t']) {
                continue;
            }
            let rendered = render(source, map! {"id" => id});
            let wrong = rendered.expect_err(&format!("{source} {id:?}"));
            assert!(wrong.contains("yaml_encode") || source.contains("load_yaml"), "{source}: {wrong}");
        }
        for source in
            ["match: {{ data.id | yaml_encode }}", "match: {{ data.id | json }}", "match: {{ data.id | tojson }}"]
        {
            assert_eq!(render(source, map! {"id" => id}), Ok(map! {"match" => id}.into()), "{source} {id:?}");
        }
    }
}

#[test]
fn an_error_names_the_location_and_the_filter() {
    let host = Host::new().with_functions(Served(&[])).with_files(Served(&[]));
    let mut context = Context::new("base");
    context.set("data", &map! {"id" => "a: b"}.into());
    let sls = Sls::compile_guarded("t.sls", "a:\n  b: {{ data['id'] }}\n", "jinja|yaml", VARIABLES).unwrap();
    let (text, placeholders) = sls.render_guarded(&context, &host).unwrap();
    let error = sls.parse_guarded(&text, &placeholders).unwrap_err();
    assert_eq!(error.line(), Some(2));
    assert_eq!(
        error.message(),
        "render failed: `{{ data['id'] }}` would change the structure of the file, as the event's text has a colon that \
         ends a key: print it alone through `| yaml_encode` or `| json`, without quotes around it"
    );
}

#[test]
fn an_encoder_in_the_wrong_place_gives_no_structure() {
    for (source, id) in [
        ("a: '{{ data.id | yaml_dquote }}'", "', b: '"),
        ("a: ['{{ data.id | json }}']", "', 'b"),
        ("a: \"{{ data.id | json }}\"", "x"),
        ("a: {{ data.id | json | upper }}", "x\ny: 1"),
        ("a: &{{ data.id }} 1", "x"),
        ("a: &x 1\nb: *{{ data.id }}", "x"),
        ("a: !{{ data.id }} 1", "str"),
        ("a: !!{{ data.id }} 1", "str"),
        ("{{ data | json }}: 1", "x"),
        ("a: {b: 1, <<: {{ data | json }}}", "x"),
    ] {
        assert!(render(source, map! {"id" => id}).is_err(), "{source}");
    }
    // Inside the quotes it is text.
    assert_eq!(render("a: echo {{ data.id | json }}", map! {"id" => "x"}), Ok(map! {"a" => "echo \"x\""}.into()));
    assert_eq!(render("a: |\n  {{ data | json }}\n", map! {"id" => "x"}), Ok(map! {"a" => "{\"id\": \"x\"}\n"}.into()));
    // Text in a comment does not become structure.
    assert_eq!(render("# {{ data.id }}\na: 1", map! {"id" => "x\nb: 2"}), Ok(map! {"a" => 1}.into()));
}

#[test]
fn a_mapping_that_is_printed_alone_is_data() {
    let data = || map! {"id" => "x: 1\n'y' \"z\", #", "n" => 12, "none" => Value::Nil, "l" => list!["*a", "012", true]};
    let whole = data();
    for (source, expected) in [
        ("a: {{ data }}", map! {"a" => whole.clone()}),
        ("a:\n  - {{ data }}", map! {"a" => list![whole.clone()]}),
        ("a: {b: {{ data }}, c: 1}", map! {"a" => map! {"b" => whole.clone(), "c" => 1}}),
        ("{% set d = {'e': data} %}a: {{ d }}", map! {"a" => map! {"e" => whole.clone()}}),
        ("a: {{ {'l': data.l} }}", map! {"a" => map! {"l" => whole["l"].clone()}}),
        ("{{ data }}", whole.clone()),
    ] {
        assert_eq!(render(source, data()), Ok(expected.into()), "{source}");
    }
    for source in [
        "a: x {{ data }}",
        "a: '{{ data }}'",
        "{{ data }}: 1",
        "a: {b: 1, <<: {{ data }}}",
        "a: {{ data.l }}",
        "a: {{ [data.id] }}",
    ] {
        assert!(render(source, data()).is_err(), "{source}: {:?}", render(source, data()));
    }
}

#[test]
fn the_templates_own_text_is_printed_unchanged() {
    for (source, expected) in [
        ("a: {{ opts.list }}", Value::from(map! {"a" => list![1, 2]})),
        ("a: {{ opts.port }}", map! {"a" => 80}.into()),
        ("{% set l = ['a*', 'b'] %}a: {{ l }}", map! {"a" => list!["a*", "b"]}.into()),
        ("{% set t = {'w': '{x: 1}'} %}a: {{ t[data.id] }}", map! {"a" => map! {"x" => 1}}.into()),
        ("{% set t = {'w': '{x: 1}'} %}a: {{ t.get(data.id, '[]') }}", map! {"a" => map! {"x" => 1}}.into()),
        ("a: {{ '[1]' if data.id == 'w' else '[2]' }}", map! {"a" => list![1]}.into()),
        ("a: {{ data.id == 'w' }}", map! {"a" => true}.into()),
        ("a: {{ salt['test.echo']('[1]') }}", map! {"a" => list![1]}.into()),
        ("{% macro m(x) %}{{ x }}{% endmacro %}a: {{ m('[1]') }}", map! {"a" => list![1]}.into()),
        ("{% for x in ['[1]'] %}a: {{ x }}{% endfor %}", map! {"a" => list![1]}.into()),
        ("{% if data.id is match('w') and data['id'].startswith('w') %}a: 1{% endif %}", map! {"a" => 1}.into()),
    ] {
        assert_eq!(render(source, map! {"id" => "w"}), Ok(expected), "{source}");
    }
}

#[test]
fn captured_text_compares_by_its_value_and_prints_as_structure() {
    for source in [
        "{% macro m(x) %}\na:\n  b: {{ x }}\n{% endmacro %}{{ m(data.id) }}",
        "{% set s %}\na:\n  b: {{ data.id }}\n{% endset %}{{ s }}",
        "{% macro m() %}\na:\n  {{ caller() }}\n{% endmacro %}{% call m() %}b: {{ data.id }}{% endcall %}",
        "{% macro m() %}a:{{ caller('b') }}{% endmacro %}{% call(k) m() %}\n  {{ k }}: {{ data.id }}\n{% endcall %}",
        "{% set s %}{{ data.id }}{% endset %}{% if s == 'w' and s.startswith('w') %}a: {b: {{ s }}}{% endif %}",
        "{% macro m(x) %}{% if x == 'w' %}yes{% endif %}{% endmacro %}{% if m(data.id) == 'yes' %}a: {b: {{ data.id }}}{% endif %}",
        "{% macro m(x) %}{{ x }}{% endmacro %}{% if m(data.id) == 'w' and m(data.id) != 'v' %}a: {b: {{ m(data.id) }}}{% endif %}",
        "{% set e = data.id | json %}a: {b: {{ e }}}",
        "{% load_yaml as x %}\nb: {{ data.id }}\n{% endload %}a: {{ x | json }}",
        "{% load_json as x %}\n{\"b\": {{ data.id | json }}}\n{% endload %}a: {{ x | json }}",
    ] {
        assert_eq!(render(source, map! {"id" => "w"}), Ok(map! {"a" => map! {"b" => "w"}}.into()), "{source}");
    }
}

#[test]
fn data_that_repeats_captured_text_gets_no_structure_from_it() {
    // The second block captures the same text as the first one.
    let source = "{% set a %}x: 1\ny: 2{% endset %}{% set b %}{{ data.id }}{% endset %}p: 1\n{{ b }}";
    assert!(render(source, map! {"id" => "x: 1\ny: 2"}).is_err());
    let source = "{% set a %}x: 1\ny: 2{% endset %}{{ a }}\n{% set b %}{{ data.id }}{% endset %}{{ b }}: 3";
    assert!(render(source, map! {"id" => "x: 1\ny: 2"}).is_err());
}

#[test]
fn included_templates_are_guarded_too() {
    const FILES: &[(&str, &str)] = &[
        ("map.jinja", "{% set targets = {'w': '[1]'} %}{% macro m(x) %}{{ x }}{% endmacro %}{% set seen = data.id %}"),
        ("part.sls", "a: {{ data.id }}"),
        ("values.yaml", "w: '[1]'"),
        ("row.jinja", "a: {{ row }}"),
    ];
    for (source, harmless) in [
        ("{% from 'map.jinja' import m %}a: {{ m(data.id) }}", "w"),
        ("{% import 'map.jinja' as lib %}a: {{ lib.m(data.id) }}", "w"),
        ("{% import 'map.jinja' as lib %}{% set l2 = lib %}a: {{ l2.m(data.id) }}", "w"),
        ("{% from 'map.jinja' import seen %}a: {{ seen }}", "w"),
        ("{% import 'map.jinja' as lib %}a: {{ lib.seen }}", "w"),
        ("{% from 'map.jinja' import m as n %}a: {{ n(data.id) }}", "w"),
        ("{% include 'part.sls' %}", "w"),
        ("{% set x %}{% include 'part.sls' %}{% endset %}{{ x }}", "w"),
        ("{% set row = data.id %}{% include 'row.jinja' %}", "w"),
    ] {
        assert_eq!(render_with(source, map! {"id" => harmless}, FILES), Ok(map! {"a" => "w"}.into()), "{source}");
        for id in ["*x", "x\nb: 1", "[1]", "x: y", "x #"] {
            assert!(render_with(source, map! {"id" => id}, FILES).is_err(), "{source} {id}");
        }
    }
    for source in [
        "{% from 'map.jinja' import targets %}a: {{ targets[data.id] }}",
        "{% import 'map.jinja' as lib %}a: {{ lib.targets.w }}",
        "{% import_yaml 'values.yaml' as values %}a: {{ values.w }}",
        "{% set row = '[1]' %}{% include 'row.jinja' %}",
    ] {
        assert_eq!(render_with(source, map! {"id" => "w"}, FILES), Ok(map! {"a" => list![1]}.into()), "{source}");
    }
    assert!(render_with("{% include data.id %}", map! {"id" => "part.sls"}, FILES).unwrap_err().contains("comes from"));
}

#[test]
fn untrusted_text_that_cannot_be_tracked_is_refused() {
    for source in [
        "{% macro m() %}{{ caller() }}{% endmacro %}a: {{ m(caller=data.id) }}",
        "{% for x in [1] recursive %}{% set y = loop([]) %}{% endfor %}",
        "{% set f = salt['test.echo'] %}{% call f(data.id) %}{% endcall %}",
        "#!jinja|toml\na = '{{ data.id }}'",
    ] {
        assert!(render(source, map! {"id" => "w"}).is_err(), "{source}");
    }
}

#[test]
fn guarded_and_unguarded_templates_have_the_same_errors() {
    for (source, message) in [
        ("a: {{ data.nope }}", "Jinja variable 'dict object' has no attribute 'nope' (data has no key 'nope')"),
        ("a: {{ nope }}", "Jinja variable 'nope' is undefined"),
        ("a: {{ data.id + 1 }}", "Jinja error: can only concatenate str (not \"int\") to str"),
    ] {
        assert_eq!(render(source, map! {"id" => "w"}), Err(message.to_owned()), "{source}");
    }
}

/// Generates hostile and harmless text.
fn text() -> impl Strategy<Value = String> {
    "([a-z0-9]|[ \n\t:#,&*!|>'\"%@`{}\\[\\]?.\\\\-]|\u{85}|\u{2028}|---|: | #|- |\\*\\*|é|\u{feff}){0,12}"
}

proptest! {
    #[test]
    fn untrusted_text_is_itself_or_refused(id in text()) {
        for (source, expected) in [
            ("a:\n  b: {{ data['id'] }}\n  c: 1\n", map! {"a" => map! {"b" => id.as_str(), "c" => 1}}),
            ("a:\n  b: '{{ data['id'] }}'\n  c: 1\n", map! {"a" => map! {"b" => id.as_str(), "c" => 1}}),
            ("a:\n  b: \"{{ data['id'] }}\"\n  c: 1\n", map! {"a" => map! {"b" => id.as_str(), "c" => 1}}),
            ("a:\n  b: |\n    x {{ data['id'] }}\n  c: 1\n", map! {"a" => map! {"b" => format!("x {id}\n"), "c" => 1}}),
            ("a: [x, {{ data['id'] }}, y]\n", map! {"a" => list!["x", id.as_str(), "y"]}),
            ("a:\n- x\n- {{ data['id'] }}\n- - {{ data['id'] }}\n", map! {"a" => list!["x", id.as_str(), list![id.as_str()]]}),
            ("a:\n- x: {{ data['id'] }} y\n", map! {"a" => list![map! {"x" => format!("{id} y")}]}),
            ("a: {x: p-{{ data['id'] }}-q}\n", map! {"a" => map! {"x" => format!("p-{id}-q")}}),
            ("{{ data['id'] }}:\n  a: 1\n", map! {id.as_str() => map! {"a" => 1}}),
            ("{% set x %}a: {{ data.id }}\nb: 1{% endset %}{{ x }}", map! {"a" => id.as_str(), "b" => 1}),
        ] {
            if let Ok(rendered) = render(source, map! {"id" => id.as_str()}) {
                prop_assert_eq!(rendered, Value::from(expected), "{} {:?}", source, id);
            }
        }
        for source in ["a: {{ data.id | yaml_encode }}\nb: 1", "a: {{ data.id | json }}\nb: 1", "a: {{ data.id | tojson }}\nb: 1"] {
            prop_assert_eq!(render(source, map! {"id" => id.as_str()}), Ok(map! {"a" => id.as_str(), "b" => 1}.into()));
        }
    }

    #[test]
    fn names_of_machines_need_no_filter(id in "[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,30}") {
        prop_assert_eq!(render("match: {{ data['id'] }}", map! {"id" => id.as_str()}), Ok(map! {"match" => id}.into()));
    }
}

#[test]
fn the_deepest_event_is_rendered_in_every_form() {
    use brine_value::levels::{MAX_LEVELS, OLD_LEVELS, nested};

    let host = Host::new().with_functions(Served(&[])).with_files(Served(&[]));
    for levels in [MAX_LEVELS, OLD_LEVELS] {
        let mut context = Context::new("base");
        context.set("data", &nested(levels));
        for printed in ["data | json", "data | yaml", "data | python", "data | yaml_encode", "data"] {
            let source = format!("a: {{{{ {printed} }}}}\n");
            for guarded in [true, false] {
                // A value that cannot be written in this form is an error, not the end of the process.
                _ = if guarded {
                    let sls = Sls::compile_guarded("t.sls", &source, "jinja|yaml", VARIABLES).unwrap();
                    let rendered = sls.render_guarded(&context, &host);
                    rendered.map(|(text, placeholders)| sls.parse_guarded(&text, &placeholders).is_ok())
                } else {
                    let sls = Sls::compile("t.sls", &source, "jinja|yaml").unwrap();
                    sls.render_text(&context, &host).map(|text| brine_yaml::load(&text).is_ok())
                };
            }
        }
    }
}
