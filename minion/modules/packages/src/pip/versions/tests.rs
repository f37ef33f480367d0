use super::*;

#[test]
fn versions_are_ordered_by_release() {
    let order = ["1.0.dev1", "1.0a1", "1.0b2", "1.0rc1", "1.0", "1.0.post1", "1.0.1", "1.9", "1.10", "2", "1!0.1"];
    for pair in order.windows(2) {
        assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
    }
    for (a, b, expected) in [
        ("1.0", "1.0.0", Ordering::Equal),
        ("v1.0-RC.1", "1.0rc1", Ordering::Equal),
        ("1.0", "1.0+local", Ordering::Less),
        ("1.0.post1.dev2", "1.0.post1", Ordering::Less),
        // Invalid by PEP 440.
        ("2004d", "0.1", Ordering::Less),
        ("2004d", "2004e", Ordering::Less),
    ] {
        assert_eq!(compare(a, b), expected, "{a} {b}");
    }
}

#[test]
fn requirements_are_parsed() {
    for (text, version, good) in [
        ("x", "1", true),
        ("x==1.0", "1", true),
        ("x>=1,<2", "1.5", true),
        ("x>=1,<2", "2.0", false),
        ("x[a,b]~=1.4; python_version > '3'", "1.9", true),
        ("x~=1.4", "2.0", false),
        ("x==1.*", "1.7", true),
        ("x!=1.7", "1.7", false),
    ] {
        let requirement = Requirement::parse(text).unwrap();
        assert_eq!(
            (requirement.name.as_deref(), requirement.is_fulfilled(version)),
            (Some("x"), good),
            "{text} {version}"
        );
    }
    for (place, name) in [
        ("git+https://h/x", None),
        ("git+https://h/x.git@v1#egg=x[a]&subdirectory=y", Some("x")),
        ("/tmp/some_thing-1.0-py3-none-any.whl", Some("some-thing")),
        ("/tmp/x-1.0.tar.gz", None),
    ] {
        assert_eq!(Requirement::parse(place).unwrap().name.as_deref(), name, "{place}");
    }
    assert!(Requirement::parse("x=1").unwrap_err().starts_with("Invalid version specification"));
    assert!(Requirement::parse("").is_err());
}
