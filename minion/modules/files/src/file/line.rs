//! Edits of one line of a text, found by its content or its position.

use brine_function::Args;
use regex::Regex;

/// The arguments of `file.line` for the operation and for the position of the line.
#[derive(Args)]
pub struct PositionArgs {
    /// `ensure`, `replace`, `delete` or `insert`.
    pub(crate) mode: Option<String>,
    /// `start` or `end` of the file, for `insert`.
    pub(crate) location: Option<String>,
    /// Regular expression of the line after the new one.
    pub(crate) before: Option<String>,
    /// Regular expression of the line before the new one.
    pub(crate) after: Option<String>,
}

/// The line to edit, and where it is inserted.
pub(crate) struct Line {
    pub content: Option<String>,
    pub matching: Option<String>,
    pub location: Option<String>,
    pub before: Option<String>,
    pub after: Option<String>,
    pub indent: bool,
}

/// Returns the line ending: `\r\n`, `\n` or none.
fn ending(line: &str) -> &'static str {
    if line.ends_with("\r\n") {
        "\r\n"
    } else if line.ends_with('\n') {
        "\n"
    } else {
        ""
    }
}

/// Returns the edited text.
pub(crate) fn edited(text: &str, mode: &str, wanted: &Line) -> Result<String, String> {
    let content = wanted.content.as_deref().unwrap_or_default().trim_end_matches(['\r', '\n']);
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    match mode {
        "delete" | "replace" => {
            if mode == "replace" && wanted.content.is_none() {
                return Err("Content can only be empty if mode is \"delete\"".into());
            }
            let pattern = wanted.matching.as_deref().unwrap_or(content);
            let is_match = matcher(pattern)?;
            if mode == "delete" {
                lines.retain(|line| !is_match(line));
            } else {
                for line in lines.iter_mut().filter(|line| is_match(line)) {
                    *line = with_indent(content, line, wanted.indent) + ending(line);
                }
            }
        }
        "insert" => insert(&mut lines, content, wanted)?,
        "ensure" => ensure(&mut lines, content, wanted)?,
        other => return Err(format!("Unknown mode: \"{other}\"")),
    }
    Ok(lines.concat())
}

/// Returns a predicate for lines that contain a string, or that a regular expression matches.
fn matcher(pattern: &str) -> Result<impl Fn(&str) -> bool, String> {
    let text = pattern.to_owned();
    let regex = Regex::new(pattern).or_else(|_| Regex::new(&regex::escape(pattern)));
    let regex = regex.map_err(|error| format!("The pattern '{pattern}' cannot be used: {error}"))?;
    Ok(move |line: &str| {
        let line = line.trim_end_matches(['\r', '\n']);
        line.contains(&text) || regex.is_match(line)
    })
}

/// Returns the content with the indentation of the adjacent line.
fn with_indent(content: &str, neighbour: &str, indent: bool) -> String {
    let blank = &neighbour[..neighbour.len() - neighbour.trim_start_matches([' ', '\t']).len()];
    if indent { format!("{blank}{}", content.trim_start()) } else { content.to_owned() }
}

/// Returns the only line that matches a pattern.
fn position(lines: &[String], pattern: &str, what: &str) -> Result<Option<usize>, String> {
    let is_match = matcher(pattern)?;
    let mut found = lines.iter().enumerate().filter(|(_, line)| is_match(line)).map(|(at, _)| at);
    let first = found.next();
    if found.next().is_some() {
        return Err(format!("Found more than expected occurrences in \"{what}\" expression"));
    }
    Ok(first)
}

/// Inserts a line, with the line ending that the text uses.
fn put(lines: &mut Vec<String>, at: usize, content: String) {
    let end = lines.iter().map(|line| ending(line)).find(|end| !end.is_empty()).unwrap_or("\n");
    if let Some(before) = at.checked_sub(1).and_then(|before| lines.get_mut(before))
        && ending(before).is_empty()
    {
        before.push_str(end);
    }
    lines.insert(at, content + end);
}

fn insert(lines: &mut Vec<String>, content: &str, wanted: &Line) -> Result<(), String> {
    match (&wanted.before, &wanted.after, wanted.location.as_deref()) {
        (Some(before), Some(after), _) => {
            let no_place = || "Cannot find location to insert the line".to_owned();
            let after = position(lines, after, "after")?.ok_or_else(no_place)?;
            let is_before = matcher(before)?;
            let before = (after + 1..lines.len()).find(|at| is_before(&lines[*at])).ok_or_else(no_place)?;
            if !lines[after + 1..before].iter().any(|line| line.trim() == content.trim()) {
                let line = with_indent(content, &lines[after], wanted.indent);
                put(lines, after + 1, line);
            }
        }
        (Some(before), None, _) => {
            if let Some(at) = position(lines, before, "before")?
                && at.checked_sub(1).is_none_or(|above| lines[above].trim() != content.trim())
            {
                let line = with_indent(content, &lines[at], wanted.indent);
                put(lines, at, line);
            }
        }
        (None, Some(after), _) => {
            if let Some(at) = position(lines, after, "after")?
                && lines.get(at + 1).is_none_or(|below| below.trim() != content.trim())
            {
                let line = with_indent(content, &lines[at], wanted.indent);
                put(lines, at + 1, line);
            }
        }
        (None, None, Some("start")) => put(lines, 0, content.to_owned()),
        (None, None, Some("end")) => at_end(lines, content),
        _ => return Err("Neither \"location\" nor \"before\" nor \"after\" says where the line goes".into()),
    }
    Ok(())
}

/// Appends content without a newline at the end of a file, and keeps the previous last line whole: Salt treats the
/// newline at the end of the text as an empty line.
fn at_end(lines: &mut Vec<String>, content: &str) {
    match lines.last_mut() {
        None => lines.push(content.to_owned()),
        Some(last) if ending(last).is_empty() => {
            let text = std::mem::replace(last, format!("{content}\n"));
            lines.push(text);
        }
        Some(_) => lines.extend(["\n".to_owned(), content.to_owned()]),
    }
}

fn ensure(lines: &mut Vec<String>, content: &str, wanted: &Line) -> Result<(), String> {
    let same = |line: &str| line.trim() == content.trim();
    let no_place = || "Unable to ensure line without knowing where to put it before and/or after.".to_owned();
    match (&wanted.before, &wanted.after) {
        (Some(before), Some(after)) => {
            let (is_before, is_after) = (matcher(before)?, matcher(after)?);
            let first = lines.iter().position(|line| is_after(line)).ok_or_else(no_place)?;
            let last = (first + 1..lines.len()).find(|at| is_before(&lines[*at])).ok_or_else(no_place)?;
            match last - first - 1 {
                0 => {
                    let line = with_indent(content, &lines[first], wanted.indent);
                    put(lines, first + 1, line);
                }
                1 if same(&lines[first + 1]) => {}
                1 => {
                    let have = &lines[first + 1];
                    lines[first + 1] = with_indent(content, have, wanted.indent) + ending(have);
                }
                _ => return Err("Found more than one line between boundaries \"before\" and \"after\".".into()),
            }
        }
        (Some(before), None) => {
            let at = position(lines, before, "before")?.ok_or_else(no_place)?;
            if !at.checked_sub(1).is_some_and(|above| same(&lines[above])) {
                let line = with_indent(content, &lines[at], wanted.indent);
                put(lines, at, line);
            }
        }
        (None, Some(after)) => {
            let at = position(lines, after, "after")?.ok_or_else(no_place)?;
            if lines.get(at + 1).is_none_or(|below| !same(below)) {
                let line = with_indent(content, &lines[at], wanted.indent);
                put(lines, at + 1, line);
            }
        }
        (None, None) => return Err(no_place()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired(content: &str) -> Line {
        Line {
            content: Some(content.to_owned()),
            matching: None,

            location: None,
            before: None,
            after: None,
            indent: true,
        }
    }

    #[test]
    fn lines_are_inserted_once_at_their_position() {
        let some = |text: &str| Some(text.to_owned());
        let text = "[a]\n  x = 1\n[b]\n";
        for (mode, change, after) in [
            ("ensure", Line { after: some(r"\[a\]"), ..desired("y") }, Some("[a]\ny\n  x = 1\n[b]\n")),
            ("ensure", Line { before: some(r"\[b\]"), ..desired("x = 1") }, Some(text)),
            ("ensure", Line { after: some("nope"), ..desired("y") }, None),
            ("insert", Line { after: some("x = 1"), ..desired("y") }, Some("[a]\n  x = 1\n  y\n[b]\n")),
            ("insert", Line { location: some("start"), ..desired("y") }, Some("y\n[a]\n  x = 1\n[b]\n")),
            ("replace", Line { matching: some("x = "), ..desired("x = 2") }, Some("[a]\n  x = 2\n[b]\n")),
            ("delete", Line { matching: some("^.b"), ..desired("") }, Some("[a]\n  x = 1\n")),
            ("other", desired("y"), None),
        ] {
            assert_eq!(edited(text, mode, &change).ok().as_deref(), after, "{mode}");
        }
    }
}
