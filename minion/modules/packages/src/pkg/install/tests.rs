use brine_value::{list, map};

use super::*;

#[test]
fn packages_are_parsed_in_every_form() {
    let one = |name: &str, version: Option<&str>| (name.to_owned(), version.map(str::to_owned));
    for (name, pkgs, version, expected) in [
        (Some("a"), Value::Nil, None, vec![one("a", None)]),
        (Some("a"), Value::Nil, Some("1"), vec![one("a", Some("1"))]),
        (Some("a"), Value::Nil, Some(LATEST), vec![one("a", Some(LATEST))]),
        (Some("a,b"), Value::Nil, None, vec![one("a", None), one("b", None)]),
        (Some("x"), list!["a", map! {"b" => "2"}], None, vec![one("a", None), one("b", Some("2"))]),
        (None, list![], None, vec![]),
    ] {
        assert_eq!(requested(name, &pkgs, version), Ok(expected), "{name:?} {pkgs}");
    }
    assert!(requested(Some("--force"), &Value::Nil, None).is_err());
    assert!(requested(Some("x"), &list!["a", Value::Nil], None).is_err());
}

#[test]
fn changes_are_the_differences() {
    let of =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Versions>();
    let report = changes(&of(&[("a", "1"), ("b", "1"), ("c", "1")]), &of(&[("a", "1"), ("b", "2"), ("d", "1")]));
    let expected = map! {
        "b" => map! {"old" => "1", "new" => "2"},
        "c" => map! {"old" => "1", "new" => ""},
        "d" => map! {"old" => "", "new" => "1"},
    };
    assert_eq!(report, expected);
}

#[test]
fn multiline_error_is_one_item() {
    let report = error_message(&super::super::apt::Apt, Operation::Installing, &["one\ntwo".into(), "three".into()]);
    insta::assert_snapshot!(report, @r"
        Problem encountered installing package(s). Additional info follows:

        errors:
            - one
              two
            - three
        ");
    let changes = map! {"b" => map! {"old" => "1", "new" => "2"}, "a" => map! {"old" => "", "new" => "1"}};
    let outcome = Outcome { changes, errors: vec!["one".into()] };
    insta::assert_snapshot!(error_message_with_changes(&super::super::apt::Apt, Operation::Removing, &outcome), @r#"
        Problem encountered removing package(s). Additional info follows:

        changes:
            ----------
            a:
                ----------
                new:
                    1
                old:
                    
            b:
                ----------
                new:
                    2
                old:
                    1
        errors:
            - one
        "#);
}

#[test]
fn package_files_are_lists_mappings_or_their_text() {
    let one = vec![("p".to_owned(), "http://h/p.deb".to_owned())];
    for (sources, named) in [
        (list![map! {"p" => "http://h/p.deb"}], Some(&one)),
        (map! {"p" => "http://h/p.deb"}.into(), Some(&one)),
        (r#"[{"p": "http://h/p.deb"}]"#.into(), Some(&one)),
        ("{p: 'http://h/p.deb'}".into(), Some(&one)),
        ("p".into(), None),
        ("[p]".into(), None),
        (Value::from(1), None),
    ] {
        assert_eq!(named_files(&sources).ok().as_ref(), named, "{sources}");
    }
}
