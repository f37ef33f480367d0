//! Quoting of identifiers, strings and accounts in SQL.

/// Quotes an identifier: a database, table or column.
pub(super) fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Quotes a database in a grant on all of its tables, where `_` and `%` are wildcards unless escaped.
pub(super) fn database_pattern(name: &str) -> String {
    identifier(&name.replace('_', "\\_").replace('%', "\\%"))
}

/// Quotes a string. The result is invalid in the SQL mode `NO_BACKSLASH_ESCAPES`, which sessions turn off.
pub(super) fn literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for letter in text.chars() {
        match letter {
            '\'' => quoted.push_str("''"),
            '\\' => quoted.push_str("\\\\"),
            '\0' => quoted.push_str("\\0"),
            letter => quoted.push(letter),
        }
    }
    quoted.push('\'');
    quoted
}

/// Quotes a user at a host.
pub(super) fn account(user: &str, host: &str) -> String {
    format!("{}@{}", literal(user), literal(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_cannot_end_its_quotes() {
        assert_eq!(identifier("a`b"), "`a``b`");
        assert_eq!(database_pattern("a_b%"), "`a\\_b\\%`");
        assert_eq!(literal("a'b\\\0\"\n"), "'a''b\\\\\\0\"\n'");
        assert_eq!(account("o'x", "%"), "'o''x'@'%'");
    }
}
