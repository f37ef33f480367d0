//! Changes that are made and reported but do not trigger other states: `ignore_ordering` and its siblings of
//! `file.managed`.

use brine_context::StateReturn;
use brine_value::{FromValue, Value};

/// Differences that are ignored by `watch` and `onchanges`.
pub(super) struct Ignored {
    is_enabled: bool,
    whitespace: bool,
    /// Line suffixes that start with one of these are ignored.
    comments: Vec<String>,
}

impl Ignored {
    /// Parses a state's arguments. Ignoring anything also ignores the order of lines.
    pub fn new(ordering: bool, whitespace: bool, comments: &Value) -> Self {
        let comments = match comments {
            Value::Str(sign) => vec![sign.clone()],
            list => Vec::from_value(list).unwrap_or_default(),
        };
        Ignored { is_enabled: ordering || whitespace || !comments.is_empty(), whitespace, comments }
    }

    /// Hides the changes from other states if all of them are ignored.
    pub fn hide(&self, outcome: &mut StateReturn) {
        if !self.is_enabled || outcome.result == Some(false) || outcome.changes.is_empty() {
            return;
        }
        let is_significant =
            outcome.changes.get("diff").and_then(Value::as_str).is_some_and(|diff| self.is_significant(diff));
        if !is_significant {
            outcome.more.insert("skip_req".into(), true.into());
        }
    }

    /// Whether the removed lines differ from the added ones.
    fn is_significant(&self, diff: &str) -> bool {
        let changed = |sign: char| {
            let lines = diff.split_inclusive('\n').filter(|line| !line.starts_with("+++") && !line.starts_with("---"));
            let lines = lines.filter_map(|line| line.strip_prefix(sign)).map(|line| self.significant_part(line));
            let mut lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
            lines.sort_unstable();
            lines
        };
        changed('+') != changed('-')
    }

    fn significant_part<'l>(&self, line: &'l str) -> &'l str {
        let end = self.comments.iter().filter_map(|sign| line.find(sign.as_str())).min().unwrap_or(line.len());
        let line = &line[..end];
        if self.whitespace { line.trim() } else { line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_differences_trigger_nothing() {
        let none = Value::Nil;
        for (diff, ordering, whitespace, comments, is_significant) in [
            ("--- \n+++ \n@@ -1,2 +1,2 @@\n-a\n b\n+a\n", true, false, &none, false),
            ("-a\n+a \n", true, false, &none, true),
            ("-a\n+  a \n", false, true, &none, false),
            ("-a # one\n+a # two\n", false, false, &"#".into(), false),
            ("-a ; one\n+a # two\n", false, false, &brine_value::list!["#", ";"], false),
            ("+# new\n", false, false, &"#".into(), false),
            ("+new\n", true, true, &"#".into(), true),
        ] {
            assert_eq!(Ignored::new(ordering, whitespace, comments).is_significant(diff), is_significant, "{diff:?}");
        }
    }
}
