//! Formatting.

use brine_lint::format;
use lsp_types::TextEdit;

use crate::workspace::Here;

/// Returns the change that formats a file: the part between the equal beginning and the equal end, in whole lines. `None`
/// if the file cannot be formatted.
pub(crate) fn format(here: &Here<'_>) -> Option<Vec<TextEdit>> {
    let file = here.file;
    if !file.kind.is_sls() {
        return None;
    }
    let new = format::format(&file.text)?;
    if new == *file.text {
        return Some(Vec::new());
    }
    let old: Vec<&str> = file.text.split_inclusive('\n').collect();
    let lines: Vec<&str> = new.split_inclusive('\n').collect();
    let same = old.iter().zip(&lines).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (&old[same..], &lines[same..]);
    let after = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let start: usize = old[..same].iter().map(|line| line.len()).sum();
    let length: usize = old_rest[..old_rest.len() - after].iter().map(|line| line.len()).sum();
    let new_text = new_rest[..new_rest.len() - after].concat();
    Some(vec![TextEdit { range: here.range(&(start..start + length)), new_text }])
}
