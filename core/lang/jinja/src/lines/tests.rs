use crate::{Context, Host, Template};
use brine_value::map;

#[test]
fn output_lines_map_to_template_lines() {
    let source = "{% set n = 2 %}\n{% macro m(x) %}\n{{ x }}: 1\n{% endmacro %}\nfirst: 1\n{% for i in range(n) %}\nitem{{ i }}:\n  {{ text }}\n{% endfor %}\n{{ m('of_macro') }}\nlast: [\n";
    let template = Template::compile("t", source).unwrap();
    let mut context = Context::new("base");
    context.set_all(&map! {"text" => "one\ntwo"});
    let host = Host::new();
    let (text, lines) = template.render_mapped(&context, &host).unwrap();
    let template_line = |output_line: &str, nth: usize| {
        let (at, _) = text.lines().enumerate().filter(|(_, line)| line.trim() == output_line).nth(nth).unwrap();
        lines.line(&text, at + 1)
    };
    for (output_line, nth, expected) in [
        ("first: 1", 0, 5),
        ("item0:", 0, 7),
        ("item1:", 0, 7),
        ("one", 0, 8),
        ("two", 1, 8),
        ("of_macro: 1", 0, 10),
        ("last: [", 0, 11),
    ] {
        assert_eq!(template_line(output_line, nth), Some(expected), "{output_line}\n{text}");
    }
    assert_eq!((lines.line(&text, 0), lines.line(&text, 1000)), (None, None));
}

#[test]
fn the_options_line_counts() {
    let host = Host::new();
    let source = "#jinja2: {\"trim_blocks\": true}\n{% if true %}\na: 1\n{% endif %}\n";
    let (text, lines) = Template::compile("t", source).unwrap().render_mapped(&Context::new("base"), &host).unwrap();
    assert_eq!((text.lines().next(), lines.line(&text, 1)), (Some("a: 1"), Some(3)));
}

#[test]
fn literal_text_keeps_its_lines() {
    let host = Host::new();
    let (text, lines) =
        Template::compile("t", "a: 1\nb: 2\n\n  c: 3").unwrap().render_mapped(&Context::new("base"), &host).unwrap();
    assert_eq!((1..=4).map(|line| lines.line(&text, line)).collect::<Vec<_>>(), [Some(1), Some(2), Some(3), Some(4)]);
}
