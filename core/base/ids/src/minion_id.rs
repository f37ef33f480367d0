//! Minion ids.

use std::fmt;
use std::str::FromStr;

/// A validated minion id: safe as a file name and as a part of a tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinionId(String);

/// The string is not a valid minion id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be a minion id: expected 1 to 255 bytes without '/', '\\', control characters or a leading dot")]
pub struct InvalidMinionId(String);

impl MinionId {
    /// Returns the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the id has no special meaning in shells, YAML and globs: letters, digits and `. _ - @ : +`, starting
    /// with a letter, digit or underscore and not ending with a colon. Only operators can accept keys of other ids.
    pub fn is_plain(&self) -> bool {
        let mut chars = self.0.chars();
        let starts = chars.next().is_some_and(|c| c.is_alphanumeric() || c == '_');
        starts && chars.all(|c| c.is_alphanumeric() || "._-@:+".contains(c)) && !self.0.ends_with(':')
    }
}

impl FromStr for MinionId {
    type Err = InvalidMinionId;

    fn from_str(text: &str) -> Result<Self, InvalidMinionId> {
        let harmful = |c: char| c == '/' || c == '\\' || c.is_control();
        if text.is_empty() || text.len() > 255 || text.starts_with('.') || text.contains(harmful) {
            return Err(InvalidMinionId(text.chars().take(300).collect()));
        }
        Ok(MinionId(text.to_owned()))
    }
}

impl std::borrow::Borrow<str> for MinionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MinionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&MinionId> for brine_value::Value {
    fn from(id: &MinionId) -> Self {
        id.as_str().into()
    }
}

/// Returns an id with the domain of `append_domain`, unless it ends in the domain or in a dot.
///
/// # Examples
/// ```
/// use brine_ids::with_domain;
///
/// assert_eq!(with_domain("web1", "foo.org"), "web1.foo.org");
/// assert_eq!(with_domain("web1.foo.org", "foo.org"), "web1.foo.org");
/// assert_eq!(with_domain("web1.", "foo.org"), "web1.");
/// assert_eq!(with_domain("web1", ""), "web1");
/// ```
pub fn with_domain(id: &str, domain: &str) -> String {
    if id.ends_with(domain) || id.ends_with('.') { id.to_owned() } else { format!("{id}.{domain}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_special_characters_are_not_plain() {
        for plain in ["web1", "web1.example.org", "ü", "db_1-x", "id@realm:1", "_x", "012", "2001:db8::1"] {
            assert!(plain.parse::<MinionId>().unwrap().is_plain(), "{plain}");
        }
        for special in
            ["*", "web*", "w?b", "[a]", "a b", "$(id)", "a;b", "\"*\" #_x", "-x", "~", "a#b", "x:", "a,b", "'a'"]
        {
            assert!(!special.parse::<MinionId>().unwrap().is_plain(), "{special}");
        }
    }

    #[test]
    fn only_safe_names_are_accepted() {
        for good in ["web1", "web1.example.org", "a b", "ü", "db_1-x", "id@realm:1"] {
            assert_eq!(good.parse::<MinionId>().unwrap().to_string(), good);
        }
        let long = "x".repeat(256);
        for bad in ["", ".", "..", ".hidden", "a/b", "../etc/passwd", "a\\b", "a\0b", "a\nb", &long] {
            assert!(bad.parse::<MinionId>().is_err(), "{bad:?}");
        }
    }
}
