use super::*;

fn form(separator: &str) -> Form {
    Form { separator: separator.into(), no_spaces: false }
}

#[test]
fn lines_that_are_not_options_are_preserved() {
    let text = "; top\na=1\n\n\n[s]\n\n  b = x=y\n    more\n# one\nstrange\n\nc=\n# d = 5\n[t]\n[s]\nc=2\n";
    let ini = Ini::parse(text, &form("="));
    assert_eq!(ini.get(Some("s"), "b"), Some("x=y\n    more"));
    assert_eq!((ini.get(None, "a"), ini.get(None, "b"), ini.get(Some("x"), "b")), (Some("1"), None, None));
    let written = "; top\na = 1\n\n[s]\nb = x=y\n    more\n# one\nstrange\n\nc = 2\n# d = 5\n\n[t]\n";
    assert_eq!(ini.render(&form("=")), written);
    assert_eq!(Ini::parse(written, &form("=")).render(&form("=")), written);
}

#[test]
fn an_option_replaces_its_commented_form() {
    let mut ini = Ini::parse("[s]\n# d = 5\n#e=1\nc=1\n", &form("="));
    let changes = ini.set(&map! {"x" => 1, "s" => map! {"e" => 2, "c" => 1}, "t" => map! {}}, &form("="));
    assert_eq!(ini.render(&Form { no_spaces: true, ..form("=") }), "x=1\n\n[s]\n# d = 5\ne=2\nc=1\n\n[t]\n");
    let expected = map! {
        "x" => change(Value::Nil, "1"),
        "s" => map! {"e" => change(Value::Nil, "2")},
        "t" => change(Value::Nil, map! {}),
    };
    assert_eq!(changes, expected);
}

#[test]
fn separators_are_configurable() {
    for (separator, text) in [(":", "a : b\n"), (" ", "a b\n"), ("=>", "a => b\n")] {
        let mut ini = Ini::default();
        ini.set(&map! {"a" => "b"}, &form(separator));
        assert_eq!(ini.render(&form(separator)), text);
        assert_eq!(Ini::parse(text, &form(separator)), ini);
        assert_eq!((ini.remove(Some("s"), "a"), ini.remove(None, "a")), (Some("b".into()), None));
    }
}
