//! Shell globs as Python's `fnmatch` reads them: over the whole text, `*` crosses `/`, `[!x]`
//! negates, a lone `[` is itself, braces and backslashes are plain.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher, GlobSetBuilder};

/// One compiled glob.
#[derive(Debug, Clone)]
pub struct Glob {
    text: String,
    matcher: GlobMatcher,
}

/// A glob that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern '{pattern}' cannot be used: {reason}")]
pub struct GlobError {
    /// The pattern as it was written.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Glob {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        Ok(Glob { text: pattern.to_owned(), matcher: compile(pattern)?.compile_matcher() })
    }

    /// Whether the whole text matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.matcher.is_match(text)
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Whether the pattern means more than itself.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether the whole text matches the pattern. For patterns that are used once; a pattern that
/// cannot be compiled matches only itself.
pub fn fnmatch(pattern: &str, text: &str) -> bool {
    if !is_pattern(pattern) {
        return pattern == text;
    }
    Glob::new(pattern).map_or(pattern == text, |glob| glob.is_match(text))
}

/// Many globs compiled into one: the cost of a match does not grow with those that do not match.
#[derive(Debug, Clone, Default)]
pub struct GlobSet {
    set: globset::GlobSet,
}

impl GlobSet {
    /// Compiles all patterns; a match is told by the pattern's place.
    pub fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, GlobError> {
        let mut builder = GlobSetBuilder::new();
        for pattern in patterns {
            builder.add(compile(pattern.as_ref())?);
        }
        let set =
            builder.build().map_err(|error| GlobError { pattern: "(all)".into(), reason: error.kind().to_string() })?;
        Ok(GlobSet { set })
    }

    /// Whether any pattern matches the whole text.
    pub fn is_match(&self, text: &str) -> bool {
        self.set.is_match(text)
    }

    /// The places of all patterns that match the whole text, rising.
    pub fn matches(&self, text: &str) -> Vec<usize> {
        self.set.matches(text)
    }
}

fn compile(pattern: &str) -> Result<globset::Glob, GlobError> {
    GlobBuilder::new(&translate(pattern))
        .literal_separator(false)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
        .map_err(|error| GlobError { pattern: pattern.to_owned(), reason: error.kind().to_string() })
}

/// From `fnmatch`'s language to that of `globset`.
fn translate(pattern: &str) -> String {
    let chars: Vec<char> = pattern.chars().collect();
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut i = 0;
    while i < chars.len() {
        match chars[i] {
            // `**` has a meaning of its own in globset, in fnmatch it has not.
            '*' if i > 0 && chars[i - 1] == '*' => {}
            '[' => {
                if let Some(end) = class_end(&chars, i) {
                    translate_class(&chars[i + 1..end], &mut out);
                    i = end;
                } else {
                    out.push_str("\\[");
                }
            }
            c @ ('{' | '}' | '\\' | ']') => out.extend(['\\', c]),
            c => out.push(c),
        }
        i += 1;
    }
    out
}

/// Where the class that starts at `start` ends: at the first `]` that is not its first character.
fn class_end(chars: &[char], start: usize) -> Option<usize> {
    let mut at = start + 1;
    if chars.get(at) == Some(&'!') {
        at += 1;
    }
    if chars.get(at) == Some(&']') {
        at += 1;
    }
    chars[at.min(chars.len())..].iter().position(|c| *c == ']').map(|found| at + found)
}

fn translate_class(class: &[char], out: &mut String) {
    out.push('[');
    let body = match class {
        ['!', rest @ ..] => {
            out.push('!');
            rest
        }
        // A leading `^` negates in globset and is itself in fnmatch: as a range it stays itself.
        ['^', rest @ ..] => {
            if rest.is_empty() || rest[0] != '-' {
                out.push_str("^-^");
                // `[^-^...` would negate: put the caret behind something harmless, itself as a range.
                let len = out.len();
                out.replace_range(len - 3.., "\u{1}-\u{1}^");
            }
            rest
        }
        all => all,
    };
    out.extend(body);
    out.push(']');
}

/// The existing paths that a glob names, sorted; one that is not absolute is looked for below `folder`. `*` does not
/// cross `/` here, and hidden files are named only by a pattern that starts with a dot, as in a shell.
pub fn paths(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![if pattern.starts_with('/') { PathBuf::from("/") } else { folder.to_owned() }];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if !is_pattern(part) {
            for path in &mut found {
                path.push(part);
            }
            continue;
        }
        let mut next = Vec::new();
        for folder in &found {
            let here = Path::new(".");
            let listed = std::fs::read_dir(if folder.as_os_str().is_empty() { here } else { folder });
            let names = listed.into_iter().flatten().filter_map(Result::ok).map(|entry| entry.file_name());
            let matching = names.filter(|name| {
                let name = name.to_string_lossy();
                fnmatch(part, &name) && (!name.starts_with('.') || part.starts_with('.'))
            });
            next.extend(matching.map(|name| folder.join(name)));
        }
        next.sort();
        found = next;
    }
    found.retain(|path| path.exists());
    found
}

#[cfg(test)]
mod tests {
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
        ] {
            assert_eq!(fnmatch(pattern, text), matches, "{pattern} on {text}");
            assert_eq!(Glob::new(pattern).unwrap().is_match(text), matches, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_set_names_all_that_match() {
        let set = GlobSet::new(["salt/auth", "salt/*", "other", "*/auth"]).unwrap();
        assert_eq!(set.matches("salt/auth"), [0, 1, 3]);
        assert!(set.matches("nothing").is_empty());
        assert!(set.is_match("other"));
    }

    proptest::proptest! {
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
    fn globs_name_paths_as_in_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/x.sls", "a/y.sls", "b/x.sls", "b/.hidden.sls", "b/z.txt"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let root = folder.path().display();
        for (pattern, names) in [
            ("a/*.sls", &["a/x.sls", "a/y.sls"][..]),
            ("*/x.sls", &["a/x.sls", "b/x.sls"]),
            ("b/*", &["b/x.sls", "b/z.txt"]),
            ("b/.*.sls", &["b/.hidden.sls"]),
            ("[ab]/x.???", &["a/x.sls", "b/x.sls"]),
            ("c/*", &[]),
        ] {
            let expected: Vec<_> = names.iter().map(|name| folder.path().join(name)).collect();
            assert_eq!(paths(Path::new(""), &format!("{root}/{pattern}")), expected, "{pattern}");
            assert_eq!(paths(folder.path(), pattern), expected, "{pattern}");
        }
    }
}
