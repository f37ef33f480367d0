//! Passwords of users in URLs (`https://user:password@host/`), and secret parameters of queries.

use std::ops::Range;

use super::{Secret, next_pair};

/// The end of a URL within a text.
const ENDS: &[char] = &[' ', '\t', '\r', '\n', '"', '\'', '<', '>', '`', '|'];

/// Returns the secrets in the URLs of a text, in order.
pub(super) fn secrets(text: &str, is_secret: impl Fn(&str) -> bool) -> impl Iterator<Item = Secret<'_>> {
    let mut at = 0;
    // The rest of a query.
    let mut query = 0..0;
    std::iter::from_fn(move || {
        loop {
            if let Some(secret) = next_pair(text, &mut query, &is_secret) {
                return Some(secret);
            }
            let begin = at + text[at..].find("://")? + "://".len();
            let rest = &text[begin..];
            let length = rest.find(|c| matches!(c, '/' | '?' | '#') || ENDS.contains(&c)).unwrap_or(rest.len());
            let authority = begin..begin + length;
            at = authority.end;
            // A URL within the URL is read by the next round.
            let rest = &text[at..];
            let url = &rest[..rest.find("://").unwrap_or(rest.len())];
            let url = &url[..url.find(ENDS).unwrap_or(url.len())];
            if let Some(start) = url.find(['?', '#']).filter(|start| url[*start..].starts_with('?')) {
                let length = url[start..].find('#').unwrap_or(url.len() - start);
                query = at + start + 1..at + start + length;
            }
            at += url.len();
            if let Some(password) = password(&text[authority.clone()]) {
                return Some(Secret {
                    name: None,
                    range: authority.start + password.start..authority.start + password.end,
                });
            }
        }
    })
}

/// Returns the password in the authority of a URL.
fn password(authority: &str) -> Option<Range<usize>> {
    let user = authority.rfind('@')?;
    let colon = authority[..user].find(':')?;
    (colon + 1 < user).then_some(colon + 1..user)
}

/// Decodes the escapes of a URL, such as `%40`.
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let code = (*first == b'%').then(|| behind.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
