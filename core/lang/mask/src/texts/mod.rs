//! Secrets in texts: in mappings in the flow style of YAML (JSON), which minions read as data; in lines `name: value` and
//! `name=value`, as in block YAML, HTTP headers, and files of settings; and in URLs. The time is linear in the text.

mod flow;
mod lines;
mod urls;

use std::borrow::Cow;
use std::ops::Range;

use crate::MASK;
use flow::is_option;

/// A secret value in a text.
#[derive(Debug)]
struct Secret<'a> {
    /// Its name; `None` for the password of a URL, and for a value in flow style that contains the secret.
    name: Option<&'a str>,
    range: Range<usize>,
}

/// Returns the first secret among pairs such as `a=1&token=x`, which are a part of a text, and removes the pairs up to it.
fn next_pair<'a>(text: &'a str, pairs: &mut Range<usize>, is_secret: impl Fn(&str) -> bool) -> Option<Secret<'a>> {
    while pairs.start < pairs.end {
        let rest = &text[pairs.clone()];
        let range = pairs.start..pairs.start + rest.find('&').unwrap_or(rest.len());
        pairs.start = (range.end + 1).min(pairs.end);
        if let Some((name, value)) = text[range.clone()].split_once('=')
            && !value.is_empty()
            && !is_option(value)
            && is_secret(name)
        {
            return Some(Secret { name: Some(name), range: range.end - value.len()..range.end });
        }
    }
    None
}

/// A secret in a text: the texts around it that identify a short one, and the secret.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found<'a> {
    pub before: Cow<'a, str>,
    pub secret: Cow<'a, str>,
    pub after: &'static str,
}

impl<'a> Found<'a> {
    fn named(name: &str, secret: Cow<'a, str>) -> Self {
        Found { before: format!("{name}=").into(), secret, after: "" }
    }
}

/// Returns a text without its secrets; `None` if it has none. A mapping in flow style is masked as a whole.
pub(crate) fn masked(text: &str, is_secret: impl Fn(&str) -> bool) -> Option<String> {
    if !text.contains([':', '=']) {
        return None;
    }
    if flow::entries(text, &is_secret).any(|entry| entry.value != MASK && !entry.is_option()) {
        return Some(MASK.to_owned());
    }
    let lines = replaced(text, lines::values(text, &is_secret).map(|value| value.range));
    let text = lines.as_deref().unwrap_or(text);
    replaced(text, urls::secrets(text, &is_secret).map(|secret| secret.range)).or(lines)
}

/// Whether a text has the mask in the place of a secret.
pub(crate) fn is_masked(text: &str) -> bool {
    text.match_indices(MASK).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + MASK.len()..]);
        let is_value = before.ends_with('=')
            || before.ends_with(": ")
            || before.ends_with("= ")
            || (before.ends_with(':') && after.starts_with('@'));
        (is_value && !after.starts_with('*')) || text == MASK
    })
}

/// Replaces ascending parts of a text by the mask; `None` if all of them are masked.
fn replaced(text: &str, parts: impl Iterator<Item = Range<usize>>) -> Option<String> {
    let mut masked: Option<String> = None;
    let mut end = 0;
    for part in parts.filter(|part| &text[part.clone()] != MASK) {
        let masked = masked.get_or_insert_default();
        masked.push_str(&text[end..part.start]);
        // A value below its key.
        if text[..part.start].ends_with('\n') {
            masked.truncate(masked.trim_end().len());
            masked.push(' ');
        }
        masked.push_str(MASK);
        end = part.end;
    }
    masked.map(|masked| masked + &text[end..])
}

/// Returns the secrets in a text.
pub(crate) fn secrets<'a>(text: &'a str, is_secret: impl Fn(&str) -> bool) -> Vec<Found<'a>> {
    let mut secrets = Vec::new();
    if !text.contains([':', '=']) {
        return secrets;
    }
    let of_flow = |text: &'a str, secrets: &mut Vec<Found<'a>>| {
        for entry in flow::entries(text, &is_secret).filter(|entry| !entry.value.is_empty() && !entry.is_option()) {
            secrets.push(Found::named(entry.name, entry.value.into()));
            let decoded = entry.decoded();
            if decoded != entry.value {
                secrets.push(Found::named(entry.name, decoded));
            }
        }
    };
    of_flow(text, &mut secrets);
    let is_flow = !secrets.is_empty();
    for value in lines::values(text, &is_secret).filter(|_| !is_flow) {
        let value_text = &text[value.range.clone()];
        match value.name {
            None => of_flow(value_text, &mut secrets),
            Some(name) => {
                secrets.extend(lines::parts(value_text, &is_secret).map(|part| Found::named(name, part)));
            }
        }
    }
    for secret in urls::secrets(text, &is_secret) {
        let raw = &text[secret.range.clone()];
        let (before, after) = match secret.name {
            Some(name) => (format!("{name}=").into(), ""),
            None => (":".into(), "@"),
        };
        let decoded = urls::decoded(raw);
        if decoded != raw {
            secrets.push(Found { before: Cow::clone(&before), secret: decoded.into(), after });
        }
        secrets.push(Found { before, secret: raw.into(), after });
    }
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_secret(name: &str) -> bool {
        ["password", "token", "key", "pillar"].contains(&name.to_lowercase().as_str())
    }

    #[test]
    fn secrets_of_lines_and_urls_are_masked_in_their_text() {
        for (text, masked_text) in [
            ("password: x", "password: **********"),
            ("a: 1\npassword: x y\nb: 2", "a: 1\npassword: **********\nb: 2"),
            ("- a: 1\n  'password': \"x\"\n- token: y\n", "- a: 1\n  'password': **********\n- token: **********\n"),
            ("key: |\n  one\n\n  two\nb: 2\n", "key: **********\nb: 2\n"),
            ("password:\n  - x\n  - y\nb: 2", "password: **********\nb: 2"),
            ("password:\n- x\n- y\nb: 2", "password: **********\nb: 2"),
            ("a:\n  password: x\n  b: {token: y}", "a:\n  password: **********\n  b: **********"),
            ("a: [\n  {token: y}]\nb: 2", "a: **********\nb: 2"),
            ("Authorization: x\nToken: y\r\nb: 2", "Authorization: x\nToken: **********\r\nb: 2"),
            ("[db]\nuser = x\npassword = y", "[db]\nuser = x\npassword = **********"),
            ("password=a&b", "password=**********"),
            ("# db\nUSER=x\nexport PASSWORD=y\n", "# db\nUSER=x\nexport PASSWORD=**********\n"),
            ("user=x&password=y&b=1", "user=x&password=**********&b=1"),
            ("https://u:p@host/x", "https://u:**********@host/x"),
            ("redis://:p@host and x://a:b@c@d/e@f", "redis://:**********@host and x://a:**********@d/e@f"),
            ("https://host/x?a=1&token=y&b=2#c", "https://host/x?a=1&token=**********&b=2#c"),
            ("url: https://u:p@h\ntoken: y", "url: https://u:**********@h\ntoken: **********"),
            ("password: https://u:p@h", "password: **********"),
            ("{password: x}", "**********"),
        ] {
            assert_eq!(masked(text, is_secret).as_deref(), Some(masked_text), "{text}");
            assert_eq!(masked(masked_text, is_secret), None, "{text}: masked twice");
            assert!(is_masked(masked_text), "{text}");
        }
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "",
            "x",
            "password",
            "a: token",
            "the password: x",
            "password:x",
            "password:",
            "password:\nb: 1",
            "password: true",
            "token: ~\nkey=False",
            "{a: token, password: null}",
            "echo a key=b",
            "https://host:80/a@b",
            "https://user@host",
            "ssh://git@host:22/x",
            "http://a:b http://c@d",
            "https://host/?tokens=1&x",
            "a://b:@c",
            "**********",
            "title: ***********",
            "echo **********",
        ] {
            assert_eq!(masked(text, is_secret), None, "{text}");
            assert_eq!(secrets(text, is_secret), [], "{text}");
            assert!(!is_masked(text) || text == MASK, "{text}");
        }
    }

    #[test]
    fn secrets_are_found_as_they_are_written_and_as_they_are_read() {
        for (text, expected) in [
            (r#"{"token": "a\"b"}"#, &[r#"a\"b"#, "a\"b"][..]),
            ("token: 'it''s'\npassword: \"a\\tb\"", &["it's", "a\tb"]),
            ("key: |\n  one\n  - two: x\n", &["one", "- two: x"]),
            ("key:\n  one\n  - two: x\n  token: three\n", &["one", "three"]),
            ("a: {token: x1}", &["x1"]),
            ("https://u:p%40ss@host?token=a%20b", &["p@ss", "p%40ss", "a b", "a%20b"]),
        ] {
            let actual: Vec<Cow<'_, str>> = secrets(text, is_secret).into_iter().map(|secret| secret.secret).collect();
            assert_eq!(actual, expected, "{text}");
        }
        let of_url = secrets("a://u:p@h", is_secret);
        assert_eq!((of_url[0].before.as_ref(), of_url[0].after), (":", "@"));
    }

    #[test]
    fn long_texts_are_read_once() {
        for part in ["password:\n", "password: x\n", " a: {\n", "- ", "://", "://u:p@", "://?", "&token=x", "a=b&", " "]
        {
            let text = format!("a: 1\n{}", part.repeat(20_000));
            for is_secret in [true, false] {
                let length: usize = secrets(&text, |_| is_secret).iter().map(|secret| secret.secret.len()).sum();
                assert!(length <= 4 * text.len(), "{part:?}");
                masked(&text, |_| is_secret);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "([{\\[]|://)?(.|\n|: |password)*") {
            let masked_text = masked(&text, |name| name.contains('a'));
            if let Some(masked_text) = masked_text {
                assert!(masked_text.contains(MASK));
            }
            drop(secrets(&text, |name| name.contains('a')));
        }
    }
}
