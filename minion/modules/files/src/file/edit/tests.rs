use super::*;

#[test]
fn replacements_use_pythons_syntax() {
    let regex = Regex::new(r"(?P<word>\w)(\d)").unwrap();
    let captures = regex.captures("h1").unwrap().unwrap();
    for (template, text) in [
        (r"\2\1$", "1h$"),
        (r"\g<word>-\g<2>", "h-1"),
        (r"a\nb", "a\nb"),
        (r"$1 ${word}", "$1 ${word}"),
        (r"\.\\", r"\.\"),
        (r"\9", ""),
    ] {
        assert_eq!(fill(template, &captures), text, "{template}");
    }
}

#[test]
fn blocks_are_inserted_once() {
    let block = |append, prepend| Block {
        start: "# S".into(),
        end: "# E".into(),
        content: "new".into(),
        append_if_not_found: append,
        prepend_if_not_found: prepend,
        append_newline: None,
        insert_before_match: None,
        insert_after_match: None,
    };
    for (text, append, prepend, after) in [
        ("a\n# S\nold\nold\n# E\nb\n", false, false, Some("a\n# S\nnew\n# E\nb\n")),
        ("a\n", false, false, None),
        ("a", true, false, Some("a\n# S\nnew\n# E\n")),
        ("a\n", false, true, Some("# S\nnew\n# E\na\n")),
        ("# S\nnever ends\n", true, false, None),
    ] {
        assert_eq!(with_block(text, &block(append, prepend)).ok().as_deref(), after, "{text:?}");
    }
}

proptest::proptest! {
    #[test]
    fn any_replacement_is_expanded(template in ".{0,40}", text in ".{0,20}") {
        let regex = Regex::new("(.)?(.)?").unwrap();
        if let Ok(Some(captures)) = regex.captures(text.as_str()) {
            fill(&template, &captures);
        }
    }
}
