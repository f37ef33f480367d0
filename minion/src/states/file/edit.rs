//! Changes within files: lines added, replaced, commented.
//!
//! Each edit is a function from text to text; [`finish`] compares, tells and writes.

use std::borrow::Cow;
use std::path::Path;

use brine_core::{Value, files, map};
use fancy_regex::{Captures, Regex};

use super::bad_path;
use super::diff::unified;
use super::managed::Contents;
use crate::states::{StateContext, StateReturn};

/// Where lines are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

/// Python's numbers of the flags that matter, and their names.
const FLAGS: &[(&str, i64)] = &[("IGNORECASE", 2), ("MULTILINE", 8), ("DOTALL", 16), ("UNICODE", 32), ("VERBOSE", 64)];

/// The arguments of `file.append` and `file.prepend`.
pub(super) struct Adding {
    pub text: Value,
    pub sources: Vec<Contents>,
    pub makedirs: bool,
    pub ignore_whitespace: bool,
    /// Whether the lines are wanted together at the start, wherever else they are.
    pub header: bool,
    /// Whether the changed lines are told.
    pub show_changes: bool,
}

/// The arguments of `file.replace`.
pub(super) struct Replacing {
    pub pattern: String,
    pub repl: String,
    pub count: usize,
    pub flags: Value,
    pub append_if_not_found: bool,
    pub prepend_if_not_found: bool,
    pub not_found_content: Option<String>,
    pub backup: Value,
    pub show_changes: bool,
    pub ignore_if_missing: bool,
}

/// The arguments of `file.blockreplace`.
pub(super) struct Block {
    pub start: String,
    pub end: String,
    pub content: String,
    pub append_if_not_found: bool,
    pub prepend_if_not_found: bool,
    /// Whether the content gets a line end: if it has none, unless this says always or never.
    pub append_newline: Option<bool>,
    /// Where a block goes that is not there: before or after the first line that a regular expression matches.
    pub insert_before_match: Option<String>,
    pub insert_after_match: Option<String>,
    pub backup: Value,
    pub show_changes: bool,
}

/// How an edit is told.
pub(super) struct Words<'w> {
    /// When something was changed.
    pub done: &'w str,
    /// When something would be changed.
    pub would: &'w str,
    /// When there is nothing to change.
    pub nothing: &'w str,
    pub backup: &'w Value,
    pub show_changes: bool,
}

/// Compares, and writes unless this is a test.
pub(super) fn finish(context: &StateContext, name: &str, before: &str, after: &str, words: &Words) -> StateReturn {
    if before == after {
        return StateReturn::ok(name, words.nothing);
    }
    let diff: Value = if words.show_changes { unified(before, after).into() } else { true.into() };
    let changes = map! {"diff" => diff};
    if context.test {
        return StateReturn::would(name, words.would).with_changes(changes);
    }
    match write(Path::new(name), after, words.backup) {
        Ok(()) => StateReturn::ok(name, words.done).with_changes(changes),
        Err(error) => StateReturn::failed(name, error),
    }
}

/// Writes a file that is there, with its mode and owner; `backup` is the ending of a copy's name.
pub(super) fn write(path: &Path, text: &str, backup: &Value) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("Unable to write {}: {error}", path.display());
    // Through a link, the file behind it is what is edited.
    let target = path.canonicalize().map_err(failed)?;
    if let Some(ending) = backup.as_str().filter(|ending| !ending.is_empty()) {
        let name = format!("{}{ending}", target.file_name().unwrap_or_default().to_string_lossy());
        std::fs::copy(&target, target.with_file_name(name)).map_err(failed)?;
    }
    files::rewrite(&target, text.as_bytes(), 0o644).map_err(|error| error.to_string())
}

/// The text of a file to edit, or why it cannot be.
pub(super) fn read(name: &str) -> Result<String, String> {
    if let Some(bad) = bad_path(name) {
        return Err(bad.comment);
    }
    if !Path::new(name).is_file() {
        return Err(format!("{name}: file not found"));
    }
    let bytes = std::fs::read(name).map_err(|error| format!("{name}: {error}"))?;
    String::from_utf8(bytes).map_err(|_| format!("Cannot edit a binary file: {name}"))
}

/// `file.append` and `file.prepend`.
pub(super) fn add(context: &StateContext, name: &str, end: End, adding: &Adding) -> StateReturn {
    let Adding { text, sources, makedirs, ignore_whitespace, header, show_changes } = adding;
    let (makedirs, ignore_whitespace, header) = (*makedirs, *ignore_whitespace, *header);
    if let Some(bad) = bad_path(name) {
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
            return StateReturn::would(name, format!("File {name} is set to be created"))
                .with_changes(map! {"new" => name});
        }
        let parent = path.parent().unwrap_or(Path::new("/"));
        if makedirs && let Err(error) = std::fs::create_dir_all(parent) {
            return StateReturn::failed(name, format!("Failed to create {}: {error}", parent.display()));
        }
        if parent.is_dir()
            && let Err(error) = std::fs::File::create(path)
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
    // In test mode, Salt does not look whether a header is there.
    let lines = if header && context.test {
        chunks.iter().flat_map(|chunk| chunk.lines()).collect()
    } else if header {
        header_lines(&before, &chunks)
    } else {
        missing_lines(&before, &chunks, ignore_whitespace)
    };
    let nothing = format!("File {name} is in correct state");
    let would = format!("File {name} is set to be updated");
    let words = |done| Words { done, would: &would, nothing: &nothing, backup: &Value::Nil, show_changes: true };
    let hidden = |mut done: StateReturn| {
        if let Some(diff) = done.changes.get_mut("diff").filter(|_| !show_changes) {
            *diff = "<show_changes=False>".into();
        }
        done
    };
    let added: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    if end == End::First {
        let after = format!("{added}{before}");
        return hidden(finish(context, name, &before, &after, &words(&format!("Prepended {} lines", lines.len()))));
    }
    let separator = if before.is_empty() || before.ends_with('\n') || lines.is_empty() { "" } else { "\n" };
    let after = format!("{before}{separator}{added}");
    let mut done = finish(context, name, &before, &after, &words(&format!("Appended {} lines", lines.len())));
    if !done.changes.is_empty() {
        done.changes = map! {"diff" => append_diff(&before, &after)};
    }
    hidden(done)
}

/// Salt compares lines without their ends here, which leaves its headers with two.
fn append_diff(before: &str, after: &str) -> String {
    let told = unified(before, after);
    let lines = told
        .lines()
        .enumerate()
        .map(|(number, line)| if number < 2 || line.starts_with("@@") { format!("{line}\n") } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

/// All lines of those chunks, unless the text begins with them.
fn header_lines<'c>(text: &str, chunks: &'c [String]) -> Vec<&'c str> {
    let lines: Vec<&str> = chunks.iter().flat_map(|chunk| chunk.lines()).collect();
    if text.lines().take(lines.len()).eq(lines.iter().copied()) { Vec::new() } else { lines }
}

/// The lines of those chunks that the text does not have.
fn missing_lines<'c>(text: &str, chunks: &'c [String], ignore_whitespace: bool) -> Vec<&'c str> {
    let squeeze = |line: &str| if ignore_whitespace { line.split_whitespace().collect() } else { line.to_owned() };
    let have: Vec<String> = text.lines().map(squeeze).collect();
    let mut missing = Vec::new();
    for chunk in chunks {
        let wanted: Vec<String> = chunk.lines().map(squeeze).collect();
        if wanted.is_empty() || have.windows(wanted.len()).any(|lines| lines == wanted) {
            continue;
        }
        missing.extend(chunk.lines());
    }
    missing
}

/// Compiles a regular expression with Python's flags: a number, or a list of names.
pub(super) fn compile(pattern: &str, flags: &Value) -> Result<Regex, String> {
    let named = |name: &str| FLAGS.iter().find(|(known, _)| *known == name.to_uppercase()).map_or(0, |(_, bit)| *bit);
    let bits = match flags {
        Value::List(names) => names.iter().map(|name| named(&name.to_string())).fold(0, |all, bit| all | bit),
        Value::Str(name) => named(name),
        number => number.as_i64().unwrap_or(8),
    };
    let letters: String =
        [(2, 'i'), (8, 'm'), (16, 's'), (64, 'x')].iter().filter(|(bit, _)| bits & bit != 0).map(|(_, c)| *c).collect();
    // Python's name for the end of the text.
    let pattern_here = pattern.replace(r"\Z", r"\z");
    let flagged = if letters.is_empty() { pattern_here } else { format!("(?{letters}){pattern_here}") };
    Regex::new(&flagged).map_err(|error| format!("The pattern '{pattern}' cannot be used: {error}"))
}

/// Fills a replacement in Python's writing: `\1`, `\g<name>`, `\n`.
fn expand(template: &str, captures: &Captures<'_, str>) -> String {
    let group = |name: &str| match name.parse::<usize>() {
        Ok(number) => captures.get(number),
        Err(_) => captures.name(name),
    };
    let (mut out, mut rest) = (String::new(), template);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 {
            let digits = digits.min(2);
            out.push_str(group(&rest[..digits]).map_or("", |found| found.as_str()));
            rest = &rest[digits..];
        } else if let Some((name, after)) = rest.strip_prefix("g<").and_then(|rest| rest.split_once('>')) {
            out.push_str(group(name).map_or("", |found| found.as_str()));
            rest = after;
        } else {
            let mut chars = rest.chars();
            match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('\\') | None => out.push('\\'),
                Some(other) => out.extend(['\\', other]),
            }
            rest = chars.as_str();
        }
    }
    out.push_str(rest);
    out
}

/// `file.replace`.
pub(super) fn replace(context: &StateContext, name: &str, wanted: &Replacing) -> StateReturn {
    let nothing = "No changes needed to be made";
    let before = match read(name) {
        Ok(before) => before,
        Err(_) if wanted.ignore_if_missing && !Path::new(name).exists() => return StateReturn::ok(name, nothing),
        Err(error) => return StateReturn::failed(name, error),
    };
    let regex = match compile(&wanted.pattern, &wanted.flags) {
        Ok(regex) => regex,
        Err(error) => return StateReturn::failed(name, error),
    };
    let replaced = regex.is_match(&before).and_then(|is_match| {
        let fill = |captures: &Captures<'_, str>| expand(&wanted.repl, captures);
        is_match.then(|| regex.try_replacen(&before, wanted.count, fill).map(Cow::into_owned)).transpose()
    });
    let replaced = match replaced {
        Ok(replaced) => replaced,
        Err(error) => {
            let comment = format!("The pattern '{}' cannot be used: {error}", wanted.pattern);
            return StateReturn::failed(name, comment);
        }
    };
    // A content that is added is told as one line, however many it has.
    let mut whole = None;
    let after = if let Some(replaced) = replaced {
        replaced
    } else {
        let content = wanted.not_found_content.as_deref().unwrap_or(&wanted.repl);
        // What was put in at an earlier run need not match the pattern.
        let there = before.lines().any(|line| line == content.trim_end_matches('\n'));
        let content = format!("{content}\n");
        whole = Some(content.clone());
        match (there, wanted.append_if_not_found, wanted.prepend_if_not_found) {
            (false, true, _) if before.is_empty() || before.ends_with('\n') => format!("{before}{content}"),
            (false, true, _) => format!("{before}\n{content}"),
            (false, _, true) => format!("{content}{before}"),
            _ => before.clone(),
        }
    };
    let words = Words {
        done: "Changes were made",
        would: "Changes would have been made",
        nothing,
        backup: &wanted.backup,
        show_changes: wanted.show_changes,
    };
    let mut done = finish(context, name, &before, &after, &words);
    if let (Some(content), Some(diff)) = (whole, done.changes.get_mut("diff").filter(|diff| diff.as_str().is_some())) {
        *diff = with_whole(&before, &after, &content).into();
    }
    done
}

/// The diff of a text and one with a content added at an end, which counts as one line.
fn with_whole(before: &str, after: &str, content: &str) -> String {
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    let new = match (after.strip_suffix(content), after.strip_prefix(content)) {
        (Some(rest), _) => lines(rest).into_iter().chain([content]).collect(),
        (None, Some(rest)) => [content].into_iter().chain(lines(rest)).collect(),
        (None, None) => lines(after),
    };
    super::diff::unified_lines(&lines(before), &new)
}

/// `file.blockreplace`.
pub(super) fn block(context: &StateContext, name: &str, block: &Block) -> StateReturn {
    let before = match read(name) {
        Ok(before) => before,
        Err(error) => return StateReturn::failed(name, error),
    };
    let after = match with_block(&before, block) {
        Ok(after) => after,
        Err(why) => {
            let comment = format!("Encountered error managing block: {why}. See the log for details.");
            return StateReturn::failed(name, comment);
        }
    };
    let words = Words {
        done: "Changes were made",
        would: "Changes would be made",
        nothing: "No changes needed to be made",
        backup: &block.backup,
        show_changes: block.show_changes,
    };
    finish(context, name, &before, &after, &words)
}

/// The text with the block in it, or why it has no place.
fn with_block(text: &str, block: &Block) -> Result<String, &'static str> {
    let content = match (block.append_newline, block.content.as_str()) {
        (Some(false), content) => content.to_owned(),
        (None, content) if content.ends_with('\n') => content.to_owned(),
        (_, content) => format!("{content}\n"),
    };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let start = lines.iter().position(|line| line.contains(&block.start));
    let end = start.and_then(|start| (start..lines.len()).find(|at| lines[*at].contains(&block.end)));
    if let (Some(start), Some(end)) = (start, end) {
        let mut rest = lines[end..].concat();
        if block.append_newline == Some(false) {
            // The content may stand before the marker, in its line.
            rest = rest.find(&block.end).map_or(rest.clone(), |at| rest[at..].to_owned());
        }
        return Ok(format!("{}{content}{rest}", lines[..=start].concat()));
    }
    if start.is_some() {
        return Err("Unterminated marked block. End of file reached before marker_end.");
    }
    let whole = format!("{}\n{content}{}\n", block.start, block.end);
    let place = |pattern: &Option<String>| {
        let regex = compile(pattern.as_deref()?, &0.into()).ok()?;
        lines.iter().position(|line| regex.is_match(line).unwrap_or(false))
    };
    let before = place(&block.insert_before_match).or_else(|| place(&block.insert_after_match).map(|at| at + 1));
    if let Some(at) = before {
        return Ok(format!("{}{whole}{}", lines[..at].concat(), lines[at..].concat()));
    }
    let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match (block.append_if_not_found, block.prepend_if_not_found) {
        (true, _) => Ok(format!("{text}{separator}{whole}")),
        (_, true) => Ok(format!("{whole}{text}")),
        _ => Err("Cannot edit marked block. Markers were not found in file."),
    }
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

    #[test]
    fn replacements_are_written_as_in_python() {
        let regex = Regex::new(r"(?P<word>\w)(\d)").unwrap();
        let captures = regex.captures("h1").unwrap().unwrap();
        for (template, text) in [
            (r"\2\1$", "1h$"),
            (r"\g<word>-\g<2>", "h-1"),
            (r"a\nb", "a\nb"),
            (r"$1 ${word}", "$1 ${word}"),
            (r"\.\\", r"\.\"),
            (r"\9", ""),
        ] {
            assert_eq!(expand(template, &captures), text, "{template}");
        }
    }

    #[test]
    fn blocks_have_one_place() {
        let block = |append, prepend| Block {
            start: "# S".into(),
            end: "# E".into(),
            content: "new".into(),
            append_if_not_found: append,
            prepend_if_not_found: prepend,
            append_newline: None,
            insert_before_match: None,
            insert_after_match: None,
            backup: Value::Nil,
            show_changes: true,
        };
        for (text, append, prepend, after) in [
            ("a\n# S\nold\nold\n# E\nb\n", false, false, Some("a\n# S\nnew\n# E\nb\n")),
            ("a\n", false, false, None),
            ("a", true, false, Some("a\n# S\nnew\n# E\n")),
            ("a\n", false, true, Some("# S\nnew\n# E\na\n")),
            ("# S\nnever ends\n", true, false, None),
        ] {
            assert_eq!(with_block(text, &block(append, prepend)).ok().as_deref(), after, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_replacement_is_filled_in(template in ".{0,40}", text in ".{0,20}") {
            let regex = Regex::new("(.)?(.)?").unwrap();
            if let Ok(Some(captures)) = regex.captures(text.as_str()) {
                expand(&template, &captures);
            }
        }
    }
}
