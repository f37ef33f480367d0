//! Compares globs with those of Python.

use super::*;

#[test]
fn globs_match_as_fnmatch_does() {
    for (pattern, text, matches) in [
        ("salt/auth", "salt/auth", true),
        ("salt/auth", "salt/auth2", false),
        ("salt/minion/*/start", "salt/minion/web1/start", true),
        ("salt/minion/*/start", "salt/minion/a/b/start", true),
        ("salt/*", "salt/", true),
        ("*", "", true),
        ("**", "a/b", true),
        ("a/**/b", "a/b", false),
        ("a/**/b", "a/x/y/b", true),
        ("web?", "web1", true),
        ("web?", "web12", false),
        ("web[1-3]", "web2", true),
        ("web[!1-3]", "web2", false),
        ("web[!1-3]", "web4", true),
        ("[]a]", "]", true),
        ("[^a]", "^", true),
        ("[^a]", "a", true),
        ("[^a]", "b", false),
        ("a[b", "a[b", true),
        ("{a,b}", "{a,b}", true),
        ("{a,b}", "a", false),
        ("a\\*", "a\\x", true),
        ("a.b", "axb", false),
        ("line*", "line\nmore", true),
        ("a*a", "a", false),
        ("a*a", "aa", true),
        ("*ab*b", "ab", false),
        ("*ab*b", "abab", true),
        ("*a?c*c?e*", "abcbcdcxe", true),
        ("*a?c*c?e*", "abcxe", false),
        ("*[0-9][0-9]*[a-z]", "x12y", true),
        ("*[0-9][0-9]*[a-z]", "x1y2y", false),
        ("?*?", "\u{e4}", false),
        ("?*?", "\u{e4}\u{df}", true),
        ("*\u{df}?", "\u{e4}\u{df}\u{df}", true),
    ] {
        assert_eq!(fnmatch(pattern, text), matches, "{pattern} on {text}");
        assert_eq!(Glob::new(pattern).unwrap().is_match(text), matches, "{pattern} on {text}");
    }
}

/// The behaviour recorded by `glob/record`.
#[test]
fn odd_patterns_match_as_in_python() {
    #[derive(serde::Deserialize)]
    struct Recorded {
        texts: Vec<String>,
        patterns: Vec<(String, Vec<usize>)>,
    }
    let recorded: Recorded = serde_json::from_str(include_str!("matches.json")).unwrap();
    assert!(recorded.patterns.len() > 2000);
    let set = GlobSet::new(recorded.patterns.iter().map(|(pattern, _)| pattern)).unwrap();
    let in_set: Vec<Vec<usize>> = recorded.texts.iter().map(|text| set.matches(text)).collect();
    for (index, (pattern, expected)) in recorded.patterns.iter().enumerate() {
        let matching = |fits: &dyn Fn(usize, &str) -> bool| -> Vec<usize> {
            (0..recorded.texts.len()).filter(|i| fits(*i, &recorded.texts[*i])).collect()
        };
        let texts = |indices: &[usize]| indices.iter().map(|i| &*recorded.texts[*i]).collect::<Vec<_>>();
        let alone = matching(&|_, text| fnmatch(pattern, text));
        assert_eq!(texts(&alone), texts(expected), "{pattern:?}");
        assert_eq!(matching(&|i, _| in_set[i].contains(&index)), *expected, "{pattern:?} in a set");
    }
}

#[test]
fn long_patterns_are_refused() {
    assert!(Glob::new(&"?".repeat(PATTERN_SIZE)).is_ok());
    let error = Glob::new(&"?".repeat(PATTERN_SIZE + 1)).unwrap_err();
    assert!(error.reason.contains("65536 bytes"), "{error}");
}

#[test]
fn a_set_returns_all_matches() {
    let set = GlobSet::new(["salt/auth", "salt/*", "other", "*/auth"]).unwrap();
    assert_eq!(set.matches("salt/auth"), [0, 1, 3]);
    assert!(set.matches("nothing").is_empty());
    assert!(set.is_match("other"));
}

proptest::proptest! {
    #[test]
    fn a_glob_and_its_regular_expression_agree(pattern in "[ab\u{df}*?]{0,8}|[]ab*?!\\[-]{0,12}", text in "[ab\u{df}\\[-]{0,10}") {
        let expression = regex::RegexBuilder::new(&regex(&parts(&pattern))).dot_matches_new_line(true).build().unwrap();
        proptest::prop_assert_eq!(Glob::new(&pattern).unwrap().is_match(&text), expression.is_match(&text));
    }

    #[test]
    fn any_pattern_is_compiled_or_refused(pattern in ".*", text in ".*") {
        let _ = fnmatch(&pattern, &text);
    }

    #[test]
    fn a_text_without_wildcards_matches_itself_alone(text in "[a-z/{}\\\\.]{0,20}", other in "[a-z/{}\\\\.]{0,20}") {
        let glob = Glob::new(&text).unwrap();
        proptest::prop_assert!(glob.is_match(&text));
        proptest::prop_assert_eq!(glob.is_match(&other), text == other);
    }
}

#[test]
fn tokens_count_a_class_as_one_character() {
    use Token::{Any, Char, One};
    for (pattern, expected) in [
        ("a*?", &[Char('a'), Any, One][..]),
        ("[ab]c", &[One, Char('c')]),
        ("[]a]", &[One]),
        ("[!]a]b", &[One, Char('b')]),
        ("[a", &[Char('['), Char('a')]),
    ] {
        assert_eq!(tokens(pattern).collect::<Vec<_>>(), expected, "{pattern}");
    }
}

#[test]
fn globs_match_paths_as_in_a_shell() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a/x.sls", "a/y.sls", "b/x.sls", "b/.hidden.sls", "b/z.txt"] {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let root = directory.path().display();
    for (pattern, names) in [
        ("a/*.sls", &["a/x.sls", "a/y.sls"][..]),
        ("*/x.sls", &["a/x.sls", "b/x.sls"]),
        ("b/*", &["b/x.sls", "b/z.txt"]),
        ("b/.*.sls", &["b/.hidden.sls"]),
        ("[ab]/x.???", &["a/x.sls", "b/x.sls"]),
        ("c/*", &[]),
    ] {
        let expected: Vec<_> = names.iter().map(|name| directory.path().join(name)).collect();
        assert_eq!(paths(Path::new(""), &format!("{root}/{pattern}")), expected, "{pattern}");
        assert_eq!(paths(directory.path(), pattern), expected, "{pattern}");
    }
}
