use std::collections::BTreeMap;

use super::*;

#[derive(serde::Deserialize)]
struct Recorded {
    texts: Vec<String>,
    patterns: Vec<(String, u32, Outcome)>,
}

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Outcome {
    Refused(String),
    Changed(BTreeMap<String, String>),
}

/// Expressions that Python accepts and that are refused here: the engine cannot repeat what matches no
/// character, and a condition cannot ask for the group that it is in.
fn may_be_refused(error: &str) -> bool {
    error.contains("Target of repeat operator") || error.starts_with("cannot refer to an open group")
}

#[test]
fn expressions_mean_what_they_mean_in_python() {
    let recorded: Recorded = serde_json::from_str(include_str!("matches.json")).unwrap();
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for (pattern, flags, expected) in &recorded.patterns {
        let regex = match (Regex::with_flags(pattern, *flags), expected) {
            (Err(error), Outcome::Refused(expected)) if error.to_string() == *expected => continue,
            (Err(error), Outcome::Refused(expected)) => {
                wrong.push(format!("{pattern:?} {flags}: {error} / {expected}"));
                continue;
            }
            (Err(error), Outcome::Changed(_)) => {
                refused += 1;
                if !may_be_refused(&error.to_string()) {
                    wrong.push(format!("{pattern:?} {flags}: refused: {error}"));
                }
                continue;
            }
            (Ok(_), Outcome::Refused(expected)) => {
                wrong.push(format!("{pattern:?} {flags}: accepted / {expected}"));
                continue;
            }
            (Ok(regex), Outcome::Changed(_)) => regex,
        };
        let Outcome::Changed(changed) = expected else { continue };
        let mark = if regex.groups > 0 { r"<\g<0>|\1>" } else { r"<\g<0>>" };
        let mark = Template::new(&regex, mark).unwrap();
        for (i, text) in recorded.texts.iter().enumerate() {
            let expected = changed.get(&i.to_string()).unwrap_or(text);
            let actual = regex.replace(text, &mark, 0);
            if actual.as_ref() != Ok(expected) {
                wrong.push(format!("{pattern:?} {flags} of {text:?}: {actual:?} / {expected:?}"));
            }
            let searched = regex.is_match(text).unwrap();
            assert_eq!(searched, changed.contains_key(&i.to_string()), "{pattern:?} {flags} of {text:?}");
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused < 10, "{refused}");
}

#[test]
fn replacements_mean_what_they_mean_in_python() {
    for (template, expected) in [
        (r"\1", Ok("x")),
        (r"\g<1>", Ok("x")),
        (r"\g<n>", Ok("x")),
        (r"\g<0>", Ok("x=1")),
        (r"\01", Ok("\u{1}")),
        (r"\0", Ok("\0")),
        (r"\101", Ok("A")),
        (r"\n\t\\\a", Ok("\n\t\\\u{7}")),
        (r"\. \- \$", Ok(r"\. \- \$")),
        ("$1 ${1}", Ok("$1 ${1}")),
        ("", Ok("")),
        (r"\2", Err("invalid group reference 2 at position 1")),
        (r"\11", Err("invalid group reference 11 at position 1")),
        (r"\g<2>", Err("invalid group reference 2 at position 3")),
        (r"\g<nope>", Err("unknown group name 'nope'")),
        (r"\g<a b>", Err("bad character in group name 'a b' at position 3")),
        (r"\g<>", Err("missing group name at position 3")),
        (r"\g<n", Err("missing >, unterminated name at position 3")),
        (r"\g", Err("missing < at position 2")),
        (r"a\x41", Err(r"bad escape \x at position 1")),
        (r"\777", Err(r"octal escape value \777 outside of range 0-0o377 at position 0")),
        ("a\\", Err("bad escape (end of pattern) at position 1")),
    ] {
        let regex = Regex::new("(?P<n>x)=1").unwrap();
        let actual = Template::new(&regex, template).map(|template| regex.replace("x=1", &template, 0).unwrap());
        assert_eq!(
            actual.map_err(|error| error.to_string()),
            expected.map(str::to_owned).map_err(str::to_owned),
            "{template}"
        );
    }
}

#[test]
fn matches_are_anchored_without_changing_the_expression() {
    let regex = Regex::new("(?i)b|ab").unwrap();
    let at_start = |text| regex.is_match_at_start(text).unwrap();
    assert!(at_start("Bx") && at_start("abx") && !at_start("xb"));
    let full = Regex::full("a|ab").unwrap();
    let is_full = |text| full.is_match_at_start(text).unwrap();
    assert!(is_full("a") && is_full("ab") && !is_full("ab\n") && !is_full("abc"));
    let end = Regex::new("a$").unwrap();
    assert!(end.is_match("a\n").unwrap() && !end.is_match("a\n\n").unwrap());
}

#[test]
fn sizes_are_limited() {
    assert!(Regex::bounded(r"\w{500}", 0, 1 << 10).is_err());
    assert!(Regex::new(&"(".repeat(100_000)).is_err());
    assert!(Regex::new(&"(?:".repeat(100_000)).is_err());
}

/// A text that ends with a newline is searched without going back over it.
#[test]
fn the_end_of_a_large_text_is_found() {
    let text = format!("{}b1\n", "a1 b\n".repeat(500_000));
    let regex = Regex::new(r"b\d$").unwrap();
    assert!(regex.is_match(&text).unwrap());
    assert!(!Regex::new(r"c\d$").unwrap().is_match(&text).unwrap());
}

proptest::proptest! {
    #[test]
    fn any_expression_is_compiled_or_refused(pattern in r"[ab1(){}\[\]?*+|^$.\\<>=!:#P\-&~ \nzwdsbé]{0,16}", text in "[ab1\n é]{0,8}") {
        for flags in [0, MULTILINE, VERBOSE, IGNORECASE | ASCII] {
            if let Ok(regex) = Regex::with_flags(&pattern, flags) {
                let _ = regex.is_match(&text);
                let _ = regex.captures_iter(&text).count();
            }
        }
    }

    #[test]
    fn an_escaped_text_matches_itself(text in r"[ab(){}\[\]?*+|^$.\\<>=!:#\-&~ \nzé]{1,16}") {
        let regex = Regex::new(&escape(&text)).unwrap();
        let captures = regex.captures(&text).unwrap().unwrap();
        proptest::prop_assert_eq!(captures.get(0).unwrap().as_str(), &text);
    }
}
