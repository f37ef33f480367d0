//! Applies fixes to texts.

use crate::Finding;

/// Returns a text with the safe fixes of its findings, and their number. A fix that overlaps an earlier one is left out:
/// it is made at the next time.
///
/// ```
/// use brine_lint::{Finding, fixes::apply};
///
/// let fix = |at| Finding::new("B601", "a.sls", at..at + 1, "").fix("remove it", at..at + 1, "", true);
/// assert_eq!(apply("a \nb \n", &[fix(1), fix(4)]), ("a\nb\n".to_owned(), 2));
/// ```
pub fn apply(text: &str, findings: &[Finding]) -> (String, usize) {
    let (mut edits, mut applied) = (Vec::new(), 0);
    let fixes = findings.iter().filter_map(|finding| finding.fix.as_ref()).filter(|fix| fix.is_safe);
    for fix in fixes {
        let overlaps = |(span, _): &(std::ops::Range<usize>, String)| {
            edits.iter().any(|(taken, _): &(std::ops::Range<usize>, String)| {
                span.start < taken.end && taken.start < span.end || span.start == taken.start
            })
        };
        if !fix.edits.iter().any(overlaps) {
            edits.extend(fix.edits.iter().cloned());
            applied += 1;
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (span, new) in edits {
        out.push_str(text.get(at..span.start).unwrap_or_default());
        out.push_str(&new);
        at = span.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    (out, applied)
}
