use super::*;

#[test]
fn lines_round_trip() {
    for (text, expected) in [
        ("deb http://h/a stable main  contrib", "deb http://h/a stable main contrib"),
        (
            "#deb [ arch=amd64,arm64 signed-by=/k.gpg ] http://h/a/ ./",
            "# deb [arch=amd64,arm64 signed-by=/k.gpg] http://h/a/ ./",
        ),
        ("deb [trusted=no lang=de] http://h a b # word", "deb [lang=de] http://h a b # word"),
        ("# a remark", "# a remark"),
        ("", ""),
        ("deb http://h", "deb http://h"),
    ] {
        assert_eq!(Source::line(text).show(), expected, "{text}");
    }
    let source = Source::line("deb [arch=amd64,arm64 trusted=yes] http://h/a stable main");
    assert_eq!(source.architectures(), ["amd64", "arm64"]);
    assert!(source.is_trusted() && source.is_source() && !source.is_disabled());
}

#[test]
fn sections_round_trip() {
    let text = "# first\nTypes: deb deb-src\nURIs: http://h/a\nSuites: x y\nComponents: main\nEnabled: no\nSigned-By:\n -----BEGIN\n .\n end\n";
    let source = Source { file: String::new(), form: Form::Section(Section::parse(text)) };
    assert_eq!((source.kinds(), source.suites()), (words("deb deb-src"), words("x y")));
    assert!(source.is_disabled());
    assert_eq!(
        source.show(),
        "# first\nTypes: deb deb-src\nURIs: http://h/a\nSuites: x y\nComponents: main\nEnabled: no\nSigned-By: -----BEGIN\n .\n end"
    );
    assert_eq!(sections("a\nb\n\n\nc\n"), ["a\nb\n", "c\n"]);
}

#[test]
fn final_slash_of_a_uri_in_a_section_is_replaced() {
    for (have, uri, written) in [
        ("http://h/a", "http://h/a/", "http://h/a/"),
        ("http://h/a/", "http://h/a", "http://h/a"),
        ("http://h/a/ http://h/b", "http://h/a", "http://h/a http://h/b"),
        ("http://h/a http://h/a/", "http://h/a/", "http://h/a http://h/a/"),
        ("http://h/a", "http://h/b", "http://h/a"),
    ] {
        let section = Section::parse(&format!("Types: deb\nURIs: {have}\nSuites: s\n"));
        let mut source = Source { file: String::new(), form: Form::Section(section) };
        source.replace_uri(uri);
        assert_eq!(source.uri(), written, "{have} {uri}");
    }
}
