//! The names of users: one canonical spelling for each user.
//!
//! Only the successful lookup of a backend creates the name of an authenticated user. Permissions, tokens, jobs and
//! events go by it, never by the name as typed: a directory that ignores case would otherwise let one person act under
//! many names.

use std::fmt;

use brine_target::matches_expression;
use icu_normalizer::ComposingNormalizerBorrowed;

/// The name of an authenticated user, in the spelling of the backend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName(String);

impl UserName {
    /// Creates the name of a user that a backend has found.
    pub(crate) fn found(name: impl Into<String>) -> Self {
        UserName(name.into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::ops::Deref for UserName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Returns a name without differences that directories ignore: of case, of width and other forms of one character
/// (NFKC), and of the number of spaces.
pub fn fold(name: &str) -> String {
    let normalizer = ComposingNormalizerBorrowed::new_nfkc();
    // Upper case first: "ß" and "ss" are equal without case.
    let upper: String = normalizer.normalize(name).chars().flat_map(char::to_uppercase).collect();
    let lower: String = upper.chars().flat_map(char::to_lowercase).collect();
    let folded = normalizer.normalize(&lower);
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a name has the canonical form of each character (NFKC).
pub(crate) fn is_normal(name: &str) -> bool {
    ComposingNormalizerBorrowed::new_nfkc().is_normalized(name)
}

/// Whether an expression of an access list, a name, glob or regular expression, matches a user. With `folds`, for users
/// of a directory that ignores case, names match in any spelling.
pub(crate) fn names_user(expression: &str, user: &str, folds: bool) -> bool {
    matches_expression(expression, user) || folds && names_folded(expression, user)
}

/// Whether an expression matches any spelling of a user.
pub(crate) fn names_folded(expression: &str, user: &str) -> bool {
    let folded = fold(user);
    fold(expression) == folded || matches_expression(expression, user) || matches_expression(expression, &folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_names_ignore_case_width_and_composition() {
        for (name, folded) in [
            ("fred", "fred"),
            ("FRED", "fred"),
            ("ｆｒｅｄ", "fred"),
            ("Fred  Smith ", "fred smith"),
            ("STRASSE", "strasse"),
            ("straße", "strasse"),
            ("e\u{301}ric", "\u{e9}ric"),
            ("\u{c9}RIC", "\u{e9}ric"),
            ("ΟΔΟΣ", "οδοσ"),
            ("οδος", "οδοσ"),
            ("ﬁona", "fiona"),
        ] {
            assert_eq!(fold(name), folded, "{name}");
            assert_eq!(fold(folded), folded, "{name}");
        }
    }

    #[test]
    fn expressions_match_other_spellings_only_where_case_is_ignored() {
        for (expression, user, exactly, folded) in [
            ("fred", "fred", true, true),
            ("Fred", "fred", false, true),
            ("fred", "FRED", false, true),
            ("fr*", "Fred", false, true),
            ("fred", "ann", false, false),
            ("(fred|ann)", "ANN", false, true),
        ] {
            assert_eq!(names_user(expression, user, false), exactly, "{expression} {user}");
            assert_eq!(names_user(expression, user, true), folded, "{expression} {user}");
        }
    }
}
