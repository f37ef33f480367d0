use super::*;

const TEXT: &str = "# of a test\n\n[case]\nname = Case\nBaseURL=http://a/$releasever\n\thttp://b\nenabled: 1\n\
                    # why it is there\n; unread\ngpgkey=\n\n[other]\nname=Other\n";

#[test]
fn repositories_round_trip() {
    let file = RepoFile::parse(TEXT);
    insta::assert_snapshot!(file.show(), @r"
        # of a test
        [case]
        name=Case
        baseurl=http://a/$releasever
         http://b
        enabled=1
        gpgkey=
        # why it is there

        [other]
        name=Other
        ");
    assert_eq!(RepoFile::parse(&file.show()), file);
    let report: Vec<(String, String)> =
        file.sections["case"].to_map().iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let expected = [
        ("name", "Case"),
        ("baseurl", "http://a/$releasever\nhttp://b"),
        ("enabled", "1"),
        ("gpgkey", ""),
        ("comments", "['why it is there']"),
    ];
    assert_eq!(report, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

#[test]
fn values_are_formatted_for_the_manager() {
    for (value, expected) in [
        (Value::Bool(true), "1"),
        (false.into(), "0"),
        (10.into(), "10"),
        ("x".into(), "x"),
        (brine_value::list!["http://a", "http://b"], "http://a\nhttp://b"),
    ] {
        assert_eq!(written(&value), expected, "{value}");
    }
}
