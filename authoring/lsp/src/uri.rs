//! URIs of files.

use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use lsp_types::Uri;

/// Returns the URI of a path.
pub(crate) fn of(path: &Path) -> Option<Uri> {
    let mut text = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => text.push(char::from(*byte)),
            other => _ = write!(text, "%{other:02X}"),
        }
    }
    Uri::from_str(&text).ok()
}

/// Returns the absolute path of a URI of this host, without `..`.
pub(crate) fn path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let mut bytes = Vec::with_capacity(rest.len());
    let mut encoded = rest.bytes();
    while let Some(byte) = encoded.next() {
        if byte == b'%' {
            let digits = [encoded.next()?, encoded.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    (path.is_absolute() && is_plain).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_and_others_are_refused() {
        for name in ["/a/b c.sls", "/ü/%41#?", "/"] {
            let uri = of(Path::new(name)).unwrap();
            assert_eq!(path(uri.as_str()).unwrap(), Path::new(name), "{}", uri.as_str());
        }
        for uri in ["untitled:a", "http://x/y", "file:///a/../b", "file:///a%2", "file:///%2e%2e/b", "file://host/a"] {
            assert_eq!(path(uri), None, "{uri}");
        }
    }
}
