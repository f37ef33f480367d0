//! Edits of files: adding, replacing and commenting lines.
//!
//! Each edit is a function from text to text; [`finish`] compares, reports and writes.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_system::user_files;
use brine_text::binary::is_binary;
use brine_value::{Value, map};

use super::contents::{BINARY_START, Contents};
use super::{directory_of, invalid_path};
use crate::file::changes::write_to_links;
use crate::file::diff::unified;
use crate::file::edit::{self, Block, Replacing};
use crate::file::encoding::Encoding;

/// Position of added lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

/// The arguments of `file.append` and `file.prepend`.
pub(super) struct TextArgs {
    pub text: Value,
    pub sources: Vec<Contents>,
    pub makedirs: bool,
    pub ignore_whitespace: bool,
    /// Whether the lines must be together at the start of the file.
    pub header: bool,
    /// Whether the changed lines are reported.
    pub show_changes: bool,
}

/// The arguments of `file.replace`.
pub(super) struct Replace {
    pub replacing: Replacing,
    pub backup: Value,
    pub show_changes: bool,
    pub ignore_if_missing: bool,
    /// UTF-8 by default.
    pub encoding: Option<String>,
}

/// The arguments of `file.blockreplace`.
pub(super) struct BlockReplace {
    pub block: Block,
    pub backup: Value,
    pub show_changes: bool,
}

/// Messages of an edit.
pub(super) struct Messages<'w> {
    /// After a change.
    pub changed: &'w str,
    /// In test mode, for a pending change.
    pub pending: &'w str,
    /// Without a change.
    pub unchanged: &'w str,
    pub backup: &'w Value,
    pub show_changes: bool,
    pub encoding: Encoding,
    /// Whether all names (hard links) of the file are changed, as by Salt's writing in place.
    pub keeps_links: bool,
}

/// Compares the texts, and writes the new one unless this is test mode.
pub(super) fn finish(
    context: &StateContext,
    name: &str,
    before: &str,
    after: &str,
    messages: &Messages,
) -> StateReturn {
    if before == after {
        return StateReturn::ok(name, messages.unchanged);
    }
    let diff: Value = if messages.show_changes { unified(before, after).into() } else { true.into() };
    let changes = map! {"diff" => diff};
    if context.test {
        return StateReturn::predicted(name, messages.pending).with_changes(changes);
    }
    let written = messages.encoding.encode(after, "strict");
    match written.and_then(|encoded| write(Path::new(name), &encoded, messages.backup, messages.keeps_links)) {
        Ok(()) => StateReturn::ok(name, messages.changed).with_changes(changes),
        Err(error) => StateReturn::failed(name, error),
    }
}

/// Writes an existing file, and keeps its mode and owner; `backup` is the suffix of a backup.
pub(super) fn write(path: &Path, text: &[u8], backup: &Value, keeps_links: bool) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("Unable to write {}: {error}", path.display());
    // The target of a link is edited.
    let target = user_files::real(path).map_err(failed)?;
    if let Some(ending) = backup.as_str().filter(|ending| !ending.is_empty()) {
        let name = format!("{}{ending}", target.file_name().unwrap_or_default().to_string_lossy());
        user_files::back_up(&target, target.with_file_name(name)).map_err(failed)?;
    }
    let written = if keeps_links { write_to_links(&target, text) } else { user_files::write(&target, text) };
    written.map_err(failed)
}

/// Returns the text of a file to edit, which is UTF-8, or why it cannot be edited.
pub(super) fn read(name: &str) -> Result<String, String> {
    text(name, read_bytes(name)?)
}

/// Returns the text of a file as [`read`], unless its start looks binary as Salt tells it: `file.replace` and
/// `file.blockreplace` leave such a file alone.
fn read_text(name: &str) -> Result<String, String> {
    let bytes = read_bytes(name)?;
    if is_binary(&bytes[..bytes.len().min(BINARY_START)]) {
        return Err(format!("Cannot perform string replacements on a binary file: {name}"));
    }
    text(name, bytes)
}

fn text(name: &str, bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| format!("Cannot edit a binary file: {name}"))
}

fn read_bytes(name: &str) -> Result<Vec<u8>, String> {
    if let Some(bad) = invalid_path(name) {
        return Err(bad.comment);
    }
    if !Path::new(name).is_file() {
        return Err(format!("{name}: file not found"));
    }
    user_files::read(name).map_err(|error| format!("{name}: {error}"))
}

/// Applies `file.append` and `file.prepend`.
pub(super) fn add(context: &StateContext, name: &str, end: End, adding: &TextArgs) -> StateReturn {
    let TextArgs { text, sources, makedirs, ignore_whitespace, header, show_changes } = adding;
    let (makedirs, ignore_whitespace, header) = (*makedirs, *ignore_whitespace, *header);
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let chunks: Vec<String> = match text {
        Value::List(items) => items.iter().map(ToString::to_string).collect(),
        Value::Nil if sources.is_empty() => return StateReturn::failed(name, "text and source are required"),
        Value::Nil => Vec::new(),
        text => vec![text.to_string()],
    };
    let path = Path::new(name);
    if !path.exists() {
        if context.test {
            return StateReturn::predicted(name, format!("File {name} is set to be created"))
                .with_changes(map! {"new" => name});
        }
        let parent = directory_of(path);
        if makedirs && let Err(error) = user_files::create_dir_all(parent) {
            return StateReturn::failed(name, format!("Failed to create {}: {error}", parent.display()));
        }
        if parent.is_dir()
            && let Err(error) = user_files::create(path)
        {
            return StateReturn::failed(name, format!("Failed to create {name}: {error}"));
        }
    }
    let before = match read(name) {
        Ok(before) => before,
        Err(error) => return StateReturn::failed(name, error),
    };
    let mut chunks = chunks;
    for source in sources {
        match source.get(context, name).map(|bytes| String::from_utf8(bytes.unwrap_or_default())) {
            Ok(Ok(text)) => chunks.push(text),
            Ok(Err(_)) => return StateReturn::failed(name, format!("{} is not UTF-8 text", source.source)),
            Err(_) => {
                let source = source.source.to_string();
                let mut failed = StateReturn::failed(&source, format!("Failed to load template file {source}"));
                failed.more.insert("data".into(), Value::List(Vec::new()));
                return failed;
            }
        }
    }
    // In test mode, Salt does not check whether a header is present.
    let lines = if header && context.test {
        chunks.iter().flat_map(|chunk| chunk.lines()).collect()
    } else if header {
        header_lines(&before, &chunks)
    } else {
        missing_lines(&before, &chunks, ignore_whitespace)
    };
    let unchanged = format!("File {name} is in correct state");
    let pending = format!("File {name} is set to be updated");
    let messages = |changed| Messages {
        changed,
        pending: &pending,
        unchanged: &unchanged,
        backup: &Value::Nil,
        show_changes: true,
        encoding: Encoding::Utf8,
        keeps_links: true,
    };
    let hidden = |mut outcome: StateReturn| {
        if let Some(diff) = outcome.changes.get_mut("diff").filter(|_| !show_changes) {
            *diff = "<show_changes=False>".into();
        }
        outcome
    };
    let added: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    if end == End::First {
        let after = format!("{added}{before}");
        return hidden(finish(context, name, &before, &after, &messages(&format!("Prepended {} lines", lines.len()))));
    }
    let separator = if before.is_empty() || before.ends_with('\n') || lines.is_empty() { "" } else { "\n" };
    let after = format!("{before}{separator}{added}");
    let mut outcome = finish(context, name, &before, &after, &messages(&format!("Appended {} lines", lines.len())));
    if !outcome.changes.is_empty() {
        outcome.changes = map! {"diff" => append_diff(&before, &after)};
    }
    hidden(outcome)
}

/// Returns the diff of an append. Salt compares lines without their ends here: its diff headers have two ends, and a
/// last line without a newline is the same as one with it.
fn append_diff(before: &str, after: &str) -> String {
    let ended = |text: &str| text.lines().flat_map(|line| [line, "\n"]).collect::<String>();
    let report = unified(&ended(before), &ended(after));
    let lines = report
        .lines()
        .enumerate()
        .map(|(number, line)| if number < 2 || line.starts_with("@@") { format!("{line}\n") } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns all lines of the chunks, unless the text begins with them.
fn header_lines<'c>(text: &str, chunks: &'c [String]) -> Vec<&'c str> {
    let lines: Vec<&str> = chunks.iter().flat_map(|chunk| chunk.lines()).collect();
    if text.lines().take(lines.len()).eq(lines.iter().copied()) { Vec::new() } else { lines }
}

/// Returns the lines of the chunks that the text does not have.
fn missing_lines<'c>(text: &str, chunks: &'c [String], ignore_whitespace: bool) -> Vec<&'c str> {
    let squeeze = |line: &str| if ignore_whitespace { line.split_whitespace().collect() } else { line.to_owned() };
    let have: Vec<String> = text.lines().map(squeeze).collect();
    let mut missing = Vec::new();
    for chunk in chunks {
        let chunk_lines: Vec<String> = chunk.lines().map(squeeze).collect();
        if chunk_lines.is_empty() || have.windows(chunk_lines.len()).any(|lines| lines == chunk_lines) {
            continue;
        }
        missing.extend(chunk.lines());
    }
    missing
}

/// Applies `file.replace`.
pub(super) fn replace(context: &StateContext, name: &str, replacement: &Replace) -> StateReturn {
    let unchanged = "No changes needed to be made";
    let text = match replacement.encoding.as_deref().map(Encoding::parse).transpose() {
        Ok(None) => read_text(name).map(|text| (text, Encoding::Utf8)),
        Ok(Some(encoding)) => {
            let text =
                read_bytes(name).and_then(|bytes| encoding.decode(&bytes).map_err(|error| format!("{name}: {error}")));
            text.map(|text| (text, encoding))
        }
        Err(error) => return StateReturn::failed(name, error),
    };
    let (before, encoding) = match text {
        Ok(text) => text,
        Err(_) if replacement.ignore_if_missing && !Path::new(name).exists() => {
            return StateReturn::ok(name, unchanged);
        }
        Err(error) => return StateReturn::failed(name, error),
    };
    let replaced = match edit::replaced(&before, &replacement.replacing) {
        Ok(replaced) => replaced,
        Err(error) => return StateReturn::failed(name, error),
    };
    let messages = Messages {
        changed: "Changes were made",
        pending: "Changes would have been made",
        unchanged,
        backup: &replacement.backup,
        show_changes: replacement.show_changes,
        encoding,
        keeps_links: true,
    };
    let mut outcome = finish(context, name, &before, &replaced.text, &messages);
    if let (Some(content), Some(diff)) =
        (&replaced.added, outcome.changes.get_mut("diff").filter(|diff| diff.as_str().is_some()))
    {
        *diff = edit::with_whole(&before, &replaced.text, content).into();
    }
    outcome
}

/// Applies `file.blockreplace`.
pub(super) fn block(context: &StateContext, name: &str, block: &BlockReplace) -> StateReturn {
    let before = match read_text(name) {
        Ok(before) => before,
        Err(error) => return StateReturn::failed(name, error),
    };
    let after = match edit::with_block(&before, &block.block) {
        Ok(after) => after,
        Err(why) => {
            let comment = format!("Encountered error managing block: {why}. See the log for details.");
            return StateReturn::failed(name, comment);
        }
    };
    let messages = Messages {
        changed: "Changes were made",
        pending: "Changes would be made",
        unchanged: "No changes needed to be made",
        backup: &block.backup,
        show_changes: block.show_changes,
        encoding: Encoding::Utf8,
        keeps_links: false,
    };
    finish(context, name, &before, &after, &messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_lines_are_added() {
        for (text, chunks, missing) in [
            ("a b\nc\n", vec!["a   b"], vec![]),
            ("a b\n", vec!["ab"], vec![]),
            ("a\n", vec!["b", "b", "c"], vec!["b", "b", "c"]),
            ("x\ny\n", vec!["x\ny"], vec![]),
            ("x\nz\n", vec!["x\ny"], vec!["x", "y"]),
            ("", vec![""], vec![]),
        ] {
            let chunks: Vec<String> = chunks.into_iter().map(str::to_owned).collect();
            assert_eq!(missing_lines(text, &chunks, true), missing, "{text:?} {chunks:?}");
        }
        assert_eq!(missing_lines("a b\n", &["a  b".to_owned()], false), ["a  b"]);
    }
}
