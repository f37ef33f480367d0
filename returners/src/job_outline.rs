//! Outlines of jobs: the fields by which lists are filtered, so that filtered jobs need not be decoded.

use brine_job::Load;
use brine_value::Value;

/// The end of the functions, and of the targets, in the text of an outline.
const END: char = '\0';
/// The separator between several of them.
const SEPARATOR: char = '\n';

/// The outline of a job.
#[derive(Debug, Clone, Copy)]
pub struct JobOutline<'a> {
    jid: &'a str,
    functions: &'a str,
    targets: &'a str,
}

impl<'a> JobOutline<'a> {
    /// Parses the text of an outline.
    pub(crate) fn new(jid: &'a str, lines: &'a str) -> Self {
        let mut parts = lines.split(END);
        JobOutline { jid, functions: parts.next().unwrap_or_default(), targets: parts.next().unwrap_or_default() }
    }

    /// Returns the job id.
    pub fn jid(&self) -> &'a str {
        self.jid
    }

    /// Returns the functions of the job: one, or several of a list.
    pub fn functions(&self) -> impl Iterator<Item = &'a str> {
        self.functions.split(SEPARATOR)
    }

    /// Returns the target: a string, or the ids of a list.
    pub fn targets(&self) -> impl Iterator<Item = &'a str> {
        self.targets.split(SEPARATOR)
    }
}

/// Returns the text of a job's outline.
pub(crate) fn lines_of(load: &Load) -> String {
    let mut text = String::new();
    for value in [load.fun(), load.tgt()] {
        for (number, one) in value.as_list().unwrap_or(std::slice::from_ref(value)).iter().enumerate() {
            if number > 0 {
                text.push(SEPARATOR);
            }
            text.push_str(&plain(one));
        }
        text.push(END);
    }
    text
}

fn plain(value: &Value) -> String {
    value.to_string().replace([END, SEPARATOR], " ")
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn outlines_have_all_functions_and_targets() {
        for (fun, tgt, functions, targets) in [
            ("test.ping".into(), "web*".into(), &["test.ping"][..], &["web*"][..]),
            (list!["a.b", "c.d"], list!["web1", "web2"], &["a.b", "c.d"], &["web1", "web2"]),
            ("a\0b\nc".into(), Value::Nil, &["a b c"], &["None"]),
        ] {
            let load = Load::from_map(map! {"jid" => "20261120235852025555", "fun" => fun, "tgt" => tgt}).unwrap();
            let text = lines_of(&load);
            let outline = JobOutline::new(load.jid().as_str(), &text);
            assert_eq!(outline.functions().collect::<Vec<_>>(), functions);
            assert_eq!(outline.targets().collect::<Vec<_>>(), targets);
        }
    }
}
