//! The pipe of renderers.

use super::*;
use brine_jinja::Limits;
use brine_value::list;

#[test]
fn the_defaults_of_the_limits_are_those_of_the_options() {
    let (options, own) = (Limits::of(&brine_config::MasterConfig::default().opts), Limits::default());
    assert_eq!((options.fuel, options.memory, options.output), (own.fuel, own.memory, own.output));
}

fn render(source: &str) -> Result<Value, RenderError> {
    let host = Host::new();
    let mut context = Context::new("base");
    context.set("x", &5.into());
    Sls::compile("t.sls", source, "jinja|yaml")?.render(&context, &host)
}

#[test]
fn a_source_is_rendered_by_its_pipe() {
    for (source, value) in [
        ("a: {{ x }}", Value::from(map! {"a" => 5})),
        ("#!yaml\na: '{{ x }}'", map! {"a" => "{{ x }}"}.into()),
        ("#!jinja|json\n{\"a\": [{{ x }}]}", map! {"a" => list![5]}.into()),
        ("#!/bin/sh\na: {{ x }}", map! {"a" => 5}.into()),
        ("#!yaml_jinja\na: {{ x }}", map! {"a" => 5}.into()),
        ("#!jinja | yaml\na: {{ x }}", map! {"a" => 5}.into()),
        ("#!json\n{\"from_json\": {\"test.nop\": []}}", map! {"from_json" => map! {"test.nop" => list![]}}.into()),
        (
            "a: {{ {'m': 'l1\\nl2', 'l': [1, none]} }}",
            map! {"a" => map! {"m" => "l1\nl2", "l" => list![1, "None"]}}.into(),
        ),
        ("#!toml\na = 5\n[b]\nc = 'd'\n", map! {"a" => 5, "b" => map! {"c" => "d"}}.into()),
        ("#!jinja|toml\na = {{ x }}", map! {"a" => 5}.into()),
        ("#!jinja|text\na: {{ x }}", "\na: 5".into()),
        ("#!yamlex\na: !aggregate 1\na: !aggregate 2", map! {"a" => list![1, 2]}.into()),
        ("#!text|yaml\na: '{{ x }}'", map! {"a" => "{{ x }}"}.into()),
        ("#!jinja|yaml|gpg\na: {{ x }}", map! {"a" => 5}.into()),
        ("#!toml\n", Value::Nil),
        ("# only a comment\n", Value::Nil),
        ("", Value::Nil),
    ] {
        assert_eq!(render(source), Ok(value), "{source}");
    }
}

#[test]
fn msgpack_is_read_from_bytes() {
    let data: Value = map! {"a" => list![1, "b"]}.into();
    let packed = msgpack::pack(&data);
    let render = |pipe: &str, rest: &[u8]| {
        let source = [pipe.as_bytes(), b"\n", rest].concat();
        Sls::compile("t.sls", source, "jinja|yaml")?.render(&Context::new("base"), &Host::new())
    };
    assert_eq!(render("#!msgpack", &packed), Ok(data.clone()));
    assert_eq!(render("#!msgpack|gpg", &packed), Ok(data.clone()));
    assert_eq!(render("#!msgpack", b""), Ok(Value::Nil));
    let bare = Sls::compile("t", "#!msgpack", "jinja|yaml").unwrap();
    assert_eq!(bare.render(&Context::new("base"), &Host::new()), Ok(Value::Nil), "no line follows");
    assert_eq!(Sls::compile("t", &packed, "msgpack").unwrap().render(&Context::new("base"), &Host::new()), Ok(data));
    assert!(
        Sls::compile_guarded("t", [b"#!msgpack\n", &packed[..]].concat(), "jinja|yaml", Variables::default()).is_ok()
    );
    for (pipe, bytes, message) in [
        ("#!yaml", &packed[..], "t.sls is not UTF-8 text"),
        ("#!jinja|yaml", &packed, "t.sls is not UTF-8 text"),
        ("#!msgpack", &packed[..4], "msgpack ends early at byte 4; line 1"),
        ("#!msgpack", b"\x81\xa1a\xdd\xff\xff\xff\xff", "msgpack ends early at byte 8; line 1"),
    ] {
        assert_eq!(render(pipe, bytes).unwrap_err().to_string(), message, "{pipe}");
    }
}

#[test]
fn errors_have_lines() {
    for (source, line, message) in [
        ("a: 1\nb: {{ y }}", 2, "Jinja variable 'y' is undefined"),
        ("a: 1\na: 2", 2, "found conflicting ID 'a'"),
        ("#!toml\na = 1\nb = [", 3, "unclosed array, expected `]`; line 3"),
        ("#!yaml|jinja\na: 1", 1, "The renderer \"yaml|jinja\" is not available"),
        ("#!foo|yaml\na: 1", 1, "The renderer \"foo|yaml\" is not available"),
    ] {
        let error = render(source).unwrap_err();
        assert_eq!((error.line(), error.message()), (Some(line), message.to_owned()), "{source}");
    }
}

#[test]
fn errors_of_rendered_text_name_the_line_of_the_template() {
    for (source, line, message) in [
        (
            "{% for i in [1, 2, 3] %}\nk{{ i }}: 1\n{% endfor %}\nbad: x: y\n",
            4,
            "mapping values are not allowed in this context (it renders to line 8: bad: x: y)",
        ),
        (
            "#!jinja|json\n{% for i in [1, 2, 3] %}\n{% endfor %}\n{\"a\": }\n",
            4,
            "expected value at line 6 column 7; line 6 (it renders to line 6: {\"a\": })",
        ),
        ("a: 1\nb: {{ x }}\na: 2\n", 3, "found conflicting ID 'a'"),
    ] {
        let error = render(source).unwrap_err();
        assert_eq!((error.line(), error.message()), (Some(line), message.to_owned()), "{source}");
    }
    let error = render("{% for i in [1, 2, 3] %}\nk{{ i }}: 1\n{% endfor %}\nbad: x: y\n").unwrap_err().to_string();
    assert_eq!(
        error,
        "mapping values are not allowed in this context\nline 4 of the template, which renders to line 8: bad: x: y"
    );
}

#[test]
fn sources_are_checked_without_rendering() {
    for (source, is_good) in [
        ("a: {{ nothing }}", true),
        ("a: {% if %}", false),
        ("a: [1", false),
        ("{{ x }}: [1", true),
        ("#!mako|yaml\na: 1", true),
        ("#!json\n{\"a\": {{ 1 }", false),
        ("", true),
    ] {
        assert_eq!(check_source("t", source, "jinja|yaml").is_ok(), is_good, "{source}");
    }
}

#[test]
fn templates_get_the_variables_of_their_sls() {
    let variables = sls_variables("a.b", "a/b/init.sls");
    assert_eq!(variables.get("tpldir"), Some(&"a/b".into()));
    assert_eq!(variables.get("slsdotpath"), Some(&"a.b".into()));
    let top = sls_variables("x", "x.sls");
    assert_eq!((top.get("tpldir"), top.get("slspath")), (Some(&".".into()), Some(&"".into())));
}

proptest::proptest! {
    #[test]
    fn any_source_renders_or_is_refused(source in "(#!)?(jinja|yaml|json|toml|text|gpg|-----BEGIN PGP MESSAGE-----|a = 1|\\||\n|a: |- |\\{\\{ x \\}\\}|[\\[\\]{}'\",#é]){0,12}") {
        let _ = render(&source);
    }
}
