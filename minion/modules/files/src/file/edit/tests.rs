use brine_value::list;

use super::*;

fn replacing(pattern: &str, repl: &str, flags: Value) -> Replacing {
    Replacing {
        pattern: pattern.into(),
        repl: repl.into(),
        count: 0,
        flags,
        append_if_not_found: false,
        prepend_if_not_found: false,
        not_found_content: None,
    }
}

/// The expected texts are those of Salt 3008.5.
#[test]
fn expressions_and_replacements_are_pythons() {
    for (text, pattern, repl, flags, after) in [
        ("x=1\n:=1\n", "[[:alpha:]]=1", "Z", 8.into(), Some("x=1\n:=1\n")),
        ("a&]\n", "[a&&b]", "Z", 8.into(), Some("ZZ]\n")),
        ("a <a>\n", r"\<a", "Z", 8.into(), Some("a Z>\n")),
        ("ha\n", r"\h", "Z", 8.into(), None),
        ("ha\n", r"\pL", "Z", 8.into(), None),
        ("ha\n", r"\z", "Z", 8.into(), None),
        ("x=1\n", "1$", "2", "IGNORECASE".into(), Some("x=2\n")),
        ("x=1\n", "X", "y", list!["IGNORECASE", "m"], Some("y=1\n")),
        ("x=1\n", "x", "y", "IGNORECASEX".into(), None),
        ("x=1\n", "x", "y", list!["I", "nope"], None),
        ("x=1\n", "x", "y", Value::Nil, None),
        ("x=1\nb\n", ".*", "Z", 8.into(), Some("ZZ\nZZ\nZ")),
        ("x  \n", r"\s*$", "Z", 8.into(), Some("xZZ")),
        ("h1\n", r"(?P<word>\w)(\d)", r"\2\1$ \g<word>", 8.into(), Some("1h$ h\n")),
        ("x=1\n", "(x)=1", r"\2", 8.into(), None),
        ("x=1\n", "(x)=1", r"\g<nope>", 8.into(), None),
        ("x=1\n", "(x)=1", r"\x41", 8.into(), None),
        ("y=1\n", "(x)=1", r"\x41", 8.into(), None),
    ] {
        let actual = replaced(text, &replacing(pattern, repl, flags)).ok().map(|result| result.text);
        assert_eq!(actual.as_deref(), after, "{text:?} {pattern} {repl}");
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
