//! Quoting for POSIX shells.

/// Quotes a string as one word of a shell, like Python's `shlex.quote`.
pub fn quote(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\"'\"'")) }
}

/// Whether a string needs no quotes as one word of a shell.
pub fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c))
}

/// Whether a part of a command, from its beginning, ends within quotes or after a backslash.
pub fn is_open(command: &str) -> bool {
    let (mut quote, mut escaped) = (None, false);
    for c in command.chars() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    quote.is_some() || escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_they_must_be() {
        for (text, quoted) in [
            ("web1.example.com", "web1.example.com"),
            ("", "''"),
            ("$(id)", "'$(id)'"),
            ("a b", "'a b'"),
            ("it's", "'it'\"'\"'s'"),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn open_quotes_are_found() {
        for (start, open) in
            [("echo ", false), ("echo '", true), ("echo 'a' ", false), ("echo \"it's ", true), ("echo \\", true)]
        {
            assert_eq!(is_open(start), open, "{start}");
        }
    }
}
