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
        // Every block, with the line ends of the file.
        ("# S\n1\n# E\nb\n# S\n2\n# E", false, false, Some("# S\nnew\n# E\nb\n# S\nnew\n# E\n")),
        ("# S\r\nold\r\n# E\r\nb\r\n", false, false, Some("# S\r\nnew\r\n# E\r\nb\r\n")),
        ("a\r\nb", true, false, Some("a\r\nb\r\n# S\r\nnew\r\n# E\r\n")),
        ("a\r\n", false, true, Some("# S\r\nnew\r\n# E\r\na\r\n")),
        ("# S\n1\n# E\n# S\nnever ends\n", false, false, None),
        ("# S # E\nb\n# E\n", false, false, Some("# S # E\nnew\n# E\n")),
        ("a\n", true, true, None),
    ] {
        assert_eq!(with_block(text, &block(append, prepend)).ok().as_deref(), after, "{text:?}");
    }
}

#[test]
fn block_content_takes_the_line_ends_of_the_file() {
    for (text, content, append_newline, after) in [
        ("# S\n# E\n", "a\r\nb", None, "# S\na\nb\n# E\n"),
        ("# S\r\n# E\r\n", "a\nb\n", None, "# S\r\na\r\nb\r\n# E\r\n"),
        ("# S\r\n# E\r\n", "a\n", Some(true), "# S\r\na\r\n\r\n# E\r\n"),
        ("# S\n# E\n", "a", Some(false), "# S\na# E\n"),
    ] {
        let block = Block {
            start: "# S".into(),
            end: "# E".into(),
            content: content.into(),
            append_if_not_found: false,
            prepend_if_not_found: false,
            append_newline,
            insert_before_match: None,
            insert_after_match: None,
        };
        assert_eq!(with_block(text, &block).as_deref(), Ok(after), "{text:?} {content:?}");
    }
}

#[test]
fn comments_are_made_of_lines_that_begin_with_a_match() {
    for (text, pattern, comment, after) in [
        ("one\ntwo\n  two\n", "^two", true, "one\n#two\n  two\n"),
        ("one\ntwo\n  two\n", "two", true, "one\n#two\n  two\n"),
        ("two\ntwofold\n", "^two$", true, "#two\ntwofold\n"),
        ("  two\n", r"^\s*two", true, "#  two\n"),
        ("#two\n", ".*two", true, "#two\n"),
        ("#two\n  #two\n# two\n", "^two", false, "two\n  #two\n two\n"),
        ("##two\n", ".*two", false, "two\n"),
    ] {
        assert_eq!(commented(text, pattern, "#", comment, true).unwrap().text, after, "{text:?} {pattern}");
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
