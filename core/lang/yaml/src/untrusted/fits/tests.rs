use super::*;

fn fits(template: &str, text: &str, style: Style, in_flow: bool) -> bool {
    let (before, after) = template.split_once('@').unwrap();
    let parts = [(before, None), (text, Some(0)), (after, None)];
    let parts: Vec<_> = parts.into_iter().map(|(text, word)| Part { text, word }).collect();
    find_misfit(&parts, ScalarContext { style, in_flow, several_lines: template.contains('\n') }).is_none()
}

#[test]
fn text_that_yaml_parses_as_a_string_is_accepted() {
    for (template, text) in [
        ("@", "web1.example.org"),
        ("@", "012"),
        ("@", "it's"),
        ("@", "a b"),
        ("@", "db_1-x"),
        ("@", "id@realm:1"),
        ("@", "-x"),
        ("@", "a,b"),
        ("x@", "'y'"),
        ("@", ""),
    ] {
        assert!(fits(template, text, Style::Plain, false), "{template} {text}");
    }
    assert!(fits("@", "a: b # c", Style::SingleQuoted, true));
    assert!(fits("@", "a: 'b'", Style::DoubleQuoted, true));
    assert!(fits("echo @\n", "a: 'b' # \"c\"", Style::Block, false));
}

#[test]
fn text_that_yaml_parses_as_more_is_refused() {
    for text in [
        "a\nb",
        "a\rb",
        "a\u{85}b",
        "a\u{2028}b",
        "a\tb",
        "\"*\" #x",
        "'*' #x",
        "[p*] #x",
        "{a: b}",
        "*",
        "&a b",
        "!x",
        "%x",
        "@x",
        "`x",
        "|",
        ">",
        "- a",
        "-",
        "? a",
        ": a",
        "a: b",
        "a:",
        "a #b",
        "# a",
        " a",
        "a ",
        "---",
        "...",
        "--- a",
        "#a",
        "\u{feff}a",
        "a\0",
    ] {
        assert!(!fits("@", text, Style::Plain, false), "{text:?}");
    }
    for text in ["a,b", "a]", "{a", "a:"] {
        assert!(!fits("@", text, Style::Plain, true), "{text:?}");
    }
    assert!(!fits("x:@", " y", Style::Plain, false));
    assert!(!fits("x @", "# y", Style::Plain, false));
    assert!(!fits("@#y", "x ", Style::Plain, false));
    assert!(!fits("@", "a'b", Style::SingleQuoted, false));
    assert!(!fits("@", "a\"b", Style::DoubleQuoted, false));
    assert!(!fits("@", "a\\b", Style::DoubleQuoted, false));
    assert!(!fits("x\n@", "a\nb", Style::Block, false));
    assert!(!fits("x\n@", " a", Style::Block, false));
}
