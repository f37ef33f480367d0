//! Edits of one line of a text, found by its content or its position.

use brine_function::Args;

use super::edit::compile;

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
pub(crate) fn edited(text: &str, mode: &str, desired: &Line) -> Result<String, String> {
    if desired.content.is_none() && mode != "delete" {
        return Err("Content can only be empty if mode is \"delete\"".into());
    }
    let content = desired.content.as_deref().unwrap_or_default();
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let end = lines.iter().map(|line| ending(line)).find(|end| !end.is_empty()).unwrap_or("\n");
    // As in Salt, a newline at the end of the text starts an empty line.
    if lines.last().is_some_and(|line| !ending(line).is_empty()) {
        lines.push(String::new());
    }
    match mode {
        "delete" | "replace" => {
            let matching = desired.matching.as_deref().filter(|pattern| !pattern.is_empty());
            let has_position = desired.before.is_some() || desired.after.is_some();
            let pattern = matching.or(desired.content.as_deref().filter(|_| !has_position)).unwrap_or_default();
            let Some(at) = positions(&lines, Some(pattern))?.first().copied() else { return Ok(text.to_owned()) };
            if mode == "delete" {
                // The first line that matches, wherever it occurs.
                let line = lines[at].clone();
                lines.retain(|other| *other != line);
            } else {
                lines[at] = with_indent(content, &lines[at], desired.indent);
            }
        }
        "insert" => insert(&mut lines, content, desired)?,
        "ensure" => ensure(&mut lines, content, desired)?,
        other => return Err(format!("Unknown mode: \"{other}\"")),
    }
    let last = lines.len().saturating_sub(1);
    for line in lines.iter_mut().take(last).filter(|line| ending(line).is_empty()) {
        line.push_str(end);
    }
    Ok(lines.concat())
}

/// Returns the positions of the lines that contain a string, or that it matches as a regular expression. There are none
/// without a pattern.
fn positions(lines: &[String], pattern: Option<&str>) -> Result<Vec<usize>, String> {
    const DOTALL: i64 = 16;
    let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty()) else { return Ok(Vec::new()) };
    // A text that is no regular expression is searched for as it is.
    let regex = compile(pattern, &DOTALL.into()).or_else(|_| compile(&regex::escape(pattern), &0.into()))?;
    let is_match = |line: &String| {
        // Python's `$` also matches before a newline at the end.
        line.contains(pattern)
            || [line.trim_end_matches(['\r', '\n']), line].iter().any(|text| regex.is_match(text).unwrap_or(false))
    };
    Ok((0..lines.len()).filter(|at| is_match(&lines[*at])).collect())
}

/// Returns the content with the indentation of the adjacent line.
fn with_indent(content: &str, neighbour: &str, indent: bool) -> String {
    let blank = &neighbour[..neighbour.len() - neighbour.trim_start_matches([' ', '\t']).len()];
    if indent { format!("{blank}{}", content.trim_start()) } else { content.to_owned() }
}

/// Returns the position of the only line that a pattern matches, or `None` if it matches none.
fn only(lines: &[String], pattern: Option<&str>, what: &str) -> Result<Option<usize>, String> {
    match positions(lines, pattern)?.as_slice() {
        [] => Ok(None),
        [at] => Ok(Some(*at)),
        _ => Err(format!("Found more than expected occurrences in \"{what}\" expression")),
    }
}

/// Whether two lines are the same but for their indentation and their ends.
fn same(line: &str, content: &str) -> bool {
    line.trim() == content.trim()
}

fn insert(lines: &mut Vec<String>, content: &str, desired: &Line) -> Result<(), String> {
    let put = |lines: &mut Vec<String>, at: usize, neighbour: usize| {
        let line = with_indent(content, lines.get(neighbour).map_or("", String::as_str), desired.indent);
        lines.insert(at, line);
    };
    match desired.location.as_deref().filter(|location| !location.is_empty()) {
        Some("start") => lines.insert(0, content.to_owned()),
        Some("end") => {
            let end = lines.len();
            put(lines, end, end.saturating_sub(1));
        }
        Some(_) => {}
        None if lines.is_empty() || (desired.before.is_none() && desired.after.is_none()) => {
            return Err("On insert either \"location\" or \"before/after\" conditions are required.".into());
        }
        None => {
            let before = only(lines, desired.before.as_deref(), "before")?;
            let after = only(lines, desired.after.as_deref(), "after")?;
            match (before, after) {
                (Some(before), Some(after)) => {
                    // A line between the two that is already there is not inserted again.
                    if !lines.iter().take(before).skip(after + 1).any(|line| same(line, content)) {
                        put(lines, before, before);
                    }
                }
                (Some(before), None) => {
                    if before.checked_sub(1).is_none_or(|above| !same(&lines[above], content)) {
                        put(lines, before, before);
                    }
                }
                (None, Some(after)) => {
                    if lines.get(after + 1).is_none_or(|below| !is_line(lines, after + 1) || !same(below, content)) {
                        put(lines, after + 1, after);
                    }
                }
                (None, None) => return Err("Neither before or after was found in file".into()),
            }
        }
    }
    if lines.len() == 1 && desired.location.as_deref() == Some("start") && ending(content).is_empty() {
        lines.push(String::new());
    }
    Ok(())
}

/// Whether this is a line of the text, not the empty one after its last newline.
fn is_line(lines: &[String], at: usize) -> bool {
    at + 1 < lines.len() || lines.get(at).is_some_and(|line| !line.is_empty())
}

fn ensure(lines: &mut Vec<String>, content: &str, desired: &Line) -> Result<(), String> {
    let before = only(lines, desired.before.as_deref(), "before")?;
    let after = only(lines, desired.after.as_deref(), "after")?;
    match (before, after) {
        (Some(before), Some(after)) => {
            let line = with_indent(content, &lines[after], desired.indent);
            if before == after + 1 {
                lines.insert(before, line);
            } else if before != after + 2 {
                return Err("Found more than one line between boundaries \"before\" and \"after\".".into());
            } else if !same(&lines[after + 1], content) {
                lines[after + 1] = line;
            }
        }
        (Some(before), None) => {
            let above = before.checked_sub(1).map(|above| lines[above].clone());
            if above.as_ref().is_none_or(|above| !same(above, content)) {
                lines.insert(before, with_indent(content, &above.unwrap_or_default(), desired.indent));
            }
        }
        (None, Some(after)) => {
            if !is_line(lines, after + 1) || !same(&lines[after + 1], content) {
                lines.insert(after + 1, with_indent(content, &lines[after], desired.indent));
            }
        }
        (None, None) => {
            return Err(
                "Wrong conditions? Unable to ensure line without knowing where to put it before and/or after.".into()
            );
        }
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

    fn between(before: &str, after: &str, content: &str) -> Line {
        let non_empty = |pattern: &str| (!pattern.is_empty()).then(|| pattern.to_owned());
        Line { before: non_empty(before), after: non_empty(after), ..desired(content) }
    }

    fn matching(pattern: &str, content: &str) -> Line {
        Line { matching: Some(pattern.into()), ..desired(content) }
    }

    fn located(location: &str) -> Line {
        Line { location: Some(location.into()), ..desired("new") }
    }

    #[test]
    fn the_first_match_is_replaced_or_deleted() {
        let text = "x=1\ny\nx=2\n";
        for (mode, text, line, after) in [
            ("replace", text, matching("x=", "x=9"), "x=9\ny\nx=2\n"),
            ("replace", "[a]\n  x = 1\n", matching("x = ", "x = 2"), "[a]\n  x = 2\n"),
            ("replace", "a\nx", matching("x", "y"), "a\ny"),
            ("replace", "a\r\nx\r\n", matching("x", "y"), "a\r\ny\r\n"),
            ("replace", text, matching("nope", "z"), text),
            ("delete", text, matching("x=", ""), "y\nx=2\n"),
            ("delete", "x\ny\nx\n", matching("x", ""), "y\n"),
            ("delete", "a.b\naxb\n", matching("a.b", ""), "axb\n"),
            ("delete", "axb\na.b\n", matching("a.b", ""), "a.b\n"),
            ("delete", "a\nab\n", matching("a(?=b)", ""), "a\n"),
            ("delete", "ab\na\n", matching("a\n", ""), "ab\n"),
            ("delete", "a[1\nb\n", matching("a[1", ""), "b\n"),
            ("delete", "a\nx\n", desired("x"), "a\n"),
            ("delete", "a\nx\n", matching("", "x"), "a\n"),
            ("delete", "a\nx\n", between("a", "", "x"), "a\nx\n"),
            ("delete", "", desired("x"), ""),
        ] {
            assert_eq!(edited(text, mode, &line).as_deref(), Ok(after), "{mode} {text:?} {:?}", line.matching);
        }
    }

    #[test]
    fn lines_are_inserted_once_at_their_position() {
        let none = "Neither before or after was found in file";
        let more = "Found more than expected occurrences in \"before\" expression";
        for (text, line, after) in [
            ("a\nb\n", located("start"), Ok("new\na\nb\n")),
            ("", located("start"), Ok("new\n")),
            ("a\nb", located("end"), Ok("a\nb\nnew")),
            ("a\n  b", located("end"), Ok("a\n  b\n  new")),
            ("a\nb\n", located("end"), Ok("a\nb\n\nnew")),
            ("", located("end"), Ok("new")),
            ("a\nb\nc\n", between("c", "a", "new"), Ok("a\nb\nnew\nc\n")),
            ("a\nb\nc\n", between("c", "a", "b"), Ok("a\nb\nc\n")),
            ("a\nb\nc\n", between("a", "c", "new"), Ok("new\na\nb\nc\n")),
            ("a\nb\nc\n", between("nope", "a", "new"), Ok("a\nnew\nb\nc\n")),
            ("a\nb\nc\n", between("c", "nope", "new"), Ok("a\nb\nnew\nc\n")),
            ("a\nc\nc\n", between("c", "a", "new"), Err(more)),
            ("a\n", between("nope", "", "new"), Err(none)),
            ("a\n", between("", "nope", "new"), Err(none)),
            ("a\nb", between("", "b", "new"), Ok("a\nb\nnew")),
            ("a\nb\n", between("", "b", "new"), Ok("a\nb\nnew\n")),
            ("a\nb\n", between("", "a", "b"), Ok("a\nb\n")),
            ("a\n  b\n", between("b", "", "new"), Ok("a\n  new\n  b\n")),
            ("a\nb\n", between("", "b", ""), Ok("a\nb\n\n")),
            (
                "",
                between("a", "", "x"),
                Err("On insert either \"location\" or \"before/after\" conditions are required."),
            ),
        ] {
            assert_eq!(edited(text, "insert", &line).as_deref().map_err(String::as_str), after, "{text:?}");
        }
    }

    #[test]
    fn lines_are_ensured_beside_their_neighbours() {
        let nowhere = "Wrong conditions? Unable to ensure line without knowing where to put it before and/or after.";
        let between_many = "Found more than one line between boundaries \"before\" and \"after\".";
        for (text, line, after) in [
            ("a\nc\n", between("c", "a", "new"), Ok("a\nnew\nc\n")),
            ("a\nb\nc\n", between("c", "a", "new"), Ok("a\nnew\nc\n")),
            ("  a\n  new\n  c\n", between("c", "a", "new"), Ok("  a\n  new\n  c\n")),
            ("a\nb\nb\nc\n", between("c", "a", "new"), Err(between_many)),
            ("a\nc\n", between("a", "c", "new"), Err(between_many)),
            ("a\nb\n", between("b", "nope", "new"), Ok("a\nnew\nb\n")),
            ("a\nb\n", between("nope", "a", "new"), Ok("a\nnew\nb\n")),
            ("  a\nb\n", between("b", "", "new"), Ok("  a\n  new\nb\n")),
            ("a\nb\n", between("a", "", "new"), Ok("new\na\nb\n")),
            ("  a\n  new\n", between("", "a", "new"), Ok("  a\n  new\n")),
            ("  a\nb\n", between("", "a", "new"), Ok("  a\n  new\nb\n")),
            ("a\n", between("", "nope", "new"), Err(nowhere)),
            ("a\n", desired("new"), Err(nowhere)),
        ] {
            assert_eq!(edited(text, "ensure", &line).as_deref().map_err(String::as_str), after, "{text:?}");
        }
        assert!(edited("a\n", "other", &desired("y")).is_err());
        let nothing = Line { content: None, ..between("", "a", "") };
        assert!(edited("a\n", "ensure", &nothing).is_err());
    }
}
