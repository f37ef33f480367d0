//! Edits of texts: replacement of matches, blocks between markers.

use brine_function::Args;
use brine_text::python_regex::{ASCII, DOTALL, IGNORECASE, MULTILINE, Regex, Template, VERBOSE};
use brine_value::Value;

/// Names of Python's flags that are supported.
const FLAGS: &[(&str, &str, u32)] = &[
    ("ASCII", "A", ASCII),
    ("DOTALL", "S", DOTALL),
    ("IGNORECASE", "I", IGNORECASE),
    ("MULTILINE", "M", MULTILINE),
    ("VERBOSE", "X", VERBOSE),
    // Python's default for texts; it has no meaning for the bytes of files.
    ("UNICODE", "U", 0),
];

/// A regular expression, and the replacement of its matches.
pub(crate) struct Replacing {
    pub pattern: String,
    pub repl: String,
    pub count: usize,
    pub flags: Value,
    pub append_if_not_found: bool,
    pub prepend_if_not_found: bool,
    /// Content to add if nothing matches; that of `repl` by default.
    pub not_found_content: Option<String>,
}

/// The arguments of functions and states that replace the matches of a regular expression.
#[derive(Args)]
pub struct PatternArgs {
    /// Regular expression to search for.
    pub(crate) pattern: String,
    /// Replacement, which may refer to groups (`\\1`).
    pub(crate) repl: Value,
    /// Highest number of replacements; 0 for all.
    #[default(0)]
    pub(crate) count: usize,
    /// Flags of the regular expression: a number, or names such as `IGNORECASE`. 8 is `MULTILINE`.
    #[default(8.into())]
    pub(crate) flags: Value,
}

/// The arguments for an expression without matches, and for the backup of the file.
#[derive(Args)]
pub struct NotFoundArgs {
    /// Whether the content is appended to the file if there is nothing to replace.
    #[default(false)]
    pub(crate) append_if_not_found: bool,
    /// Whether the content is prepended to the file if there is nothing to replace.
    #[default(false)]
    pub(crate) prepend_if_not_found: bool,
    /// Content to append or prepend; that of `repl` by default.
    #[default]
    pub(crate) not_found_content: Value,
    /// Suffix of the backup of the file, or false for none.
    #[default(".bak".into())]
    pub(crate) backup: Value,
}

impl PatternArgs {
    /// Returns the replacement. Backslashes in `repl` are literal if `is_literal`; `content` is added where nothing
    /// matches.
    pub(crate) fn replacing(self, is_literal: bool, not_found: &NotFoundArgs, content: Option<String>) -> Replacing {
        let repl = self.repl.to_string();
        Replacing {
            pattern: self.pattern,
            repl: if is_literal { repl.replace('\\', r"\\") } else { repl.clone() },
            count: self.count,
            flags: self.flags,
            append_if_not_found: not_found.append_if_not_found,
            prepend_if_not_found: not_found.prepend_if_not_found,
            not_found_content: content.or(Some(repl)),
        }
    }
}

/// Lines between two markers.
pub(crate) struct Block {
    pub start: String,
    pub end: String,
    pub content: String,
    pub append_if_not_found: bool,
    pub prepend_if_not_found: bool,
    /// Whether a newline is added to the content; if unset, only where one is missing.
    pub append_newline: Option<bool>,
    /// Regular expressions of the line before or after which a missing block is inserted: the first match counts.
    pub insert_before_match: Option<String>,
    pub insert_after_match: Option<String>,
}

/// Compiles a regular expression with Python's flags: an integer, or a list of names.
pub(crate) fn compile(pattern: &str, flags: &Value) -> Result<Regex, String> {
    compile_with(pattern, bits(flags)?)
}

/// Compiles a regular expression as [`compile`], for the functions that search bytes in Salt: Python's `\w` and its like
/// know ASCII alone there.
pub(crate) fn compile_for_bytes(pattern: &str, flags: &Value) -> Result<Regex, String> {
    compile_with(pattern, bits(flags)? | ASCII)
}

fn compile_with(pattern: &str, flags: u32) -> Result<Regex, String> {
    Regex::with_flags(pattern, flags).map_err(|error| format!("The pattern '{pattern}' cannot be used: {error}"))
}

fn bits(flags: &Value) -> Result<u32, String> {
    let named = |name: &str| {
        let is_named = |(long, short, _): &&(&str, &str, u32)| [*long, *short].contains(&&*name.to_uppercase());
        let flag = FLAGS.iter().find(is_named).map(|(.., bit)| *bit);
        flag.ok_or_else(|| format!("Invalid re flag given: {name}"))
    };
    match flags {
        Value::List(names) => names.iter().try_fold(0, |all, name| Ok(all | named(&name.to_string())?)),
        Value::Str(name) => named(name),
        other => other.as_i64().and_then(|bits| u32::try_from(bits).ok()).ok_or_else(|| {
            format!(
                "Invalid re flags: \"{other}\", must be given either as a single flag string, a list of strings, as an \
                 integer, or as an re flag"
            )
        }),
    }
}

/// Parses the replacement of what an expression matches.
pub(crate) fn template(regex: &Regex, repl: &str) -> Result<Template, String> {
    Template::new(regex, repl).map_err(|error| format!("The replacement '{repl}' cannot be used: {error}"))
}

/// A text in which lines were commented out or uncommented.
pub(crate) struct Commented {
    pub text: String,
    /// The changed lines, before and after the change.
    pub lines: Vec<(String, String)>,
}

/// Comments out the lines whose start a regular expression matches, or uncomments those that it matches after the
/// prefix at their start: an indented line matches only if the expression says so. With `keep`, lines that are
/// comments already are not commented again.
pub(crate) fn commented(text: &str, pattern: &str, sign: &str, comment: bool, keep: bool) -> Result<Commented, String> {
    let (bare, end) = unanchored(pattern);
    let prefix = if comment { String::new() } else { format!(r"{}\s*", regex::escape(sign)) };
    let regex = compile(&format!("^{prefix}(?:{bare}){end}"), &0.into())?;
    let mut result = Commented { text: String::with_capacity(text.len()), lines: Vec::new() };
    for line in text.split_inclusive('\n') {
        let is_kept = keep && comment && line.trim_start().starts_with(sign);
        if is_kept || !regex.is_match(line.trim_end_matches(['\r', '\n'])).unwrap_or(false) {
            result.text.push_str(line);
            continue;
        }
        let changed = if comment {
            format!("{sign}{line}")
        } else {
            line.trim_start_matches(|letter| sign.contains(letter)).to_owned()
        };
        result.text.push_str(&changed);
        result.lines.push((line.to_owned(), changed));
    }
    Ok(result)
}

/// Returns a regular expression without its anchors, and the anchor of its end.
pub(crate) fn unanchored(pattern: &str) -> (&str, &'static str) {
    let end = if pattern.ends_with('$') { "$" } else { "" };
    (pattern.trim_start_matches('^').trim_end_matches('$'), end)
}

/// The result of a replacement.
pub(crate) struct Replaced {
    pub text: String,
    /// The content that was added because nothing matched.
    pub added: Option<String>,
}

/// Replaces matches; if there are none, adds the content where that is requested.
pub(crate) fn replaced(before: &str, replacement: &Replacing) -> Result<Replaced, String> {
    let regex = compile_for_bytes(&replacement.pattern, &replacement.flags)?;
    let repl = template(&regex, &replacement.repl)?;
    let failed = |error| format!("The pattern '{}' cannot be used: {error}", replacement.pattern);
    if regex.is_match(before).map_err(failed)? {
        let text = regex.replace(before, &repl, replacement.count).map_err(failed)?;
        return Ok(Replaced { text, added: None });
    }
    let content = replacement.not_found_content.as_deref().unwrap_or(&replacement.repl);
    // Content that an earlier run added may not match the pattern; it must not be added again.
    let there = before.lines().any(|line| line == content.trim_end_matches('\n'));
    let content = format!("{content}\n");
    let text = match (there, replacement.append_if_not_found, replacement.prepend_if_not_found) {
        (false, true, _) if before.is_empty() || before.ends_with('\n') => format!("{before}{content}"),
        (false, true, _) => format!("{before}\n{content}"),
        (false, _, true) => format!("{content}{before}"),
        _ => before.to_owned(),
    };
    Ok(Replaced { text, added: Some(content) })
}

/// Returns the diff of a text before and after content was added at its start or end. The content counts as one line.
pub(crate) fn with_whole(before: &str, after: &str, content: &str) -> String {
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    let new = match (after.strip_suffix(content), after.strip_prefix(content)) {
        (Some(rest), _) => lines(rest).into_iter().chain([content]).collect(),
        (None, Some(rest)) => [content].into_iter().chain(lines(rest)).collect(),
        (None, None) => lines(after),
    };
    super::diff::unified_lines(&lines(before), &new)
}

/// Returns the text with every such block replaced, or with the block inserted. Lines end as the first one of the text.
/// The error is Salt's message.
pub(crate) fn with_block(text: &str, block: &Block) -> Result<String, &'static str> {
    let places = [
        block.append_if_not_found,
        block.prepend_if_not_found,
        block.insert_before_match.is_some(),
        block.insert_after_match.is_some(),
    ];
    if places.iter().filter(|is_set| **is_set).count() > 1 {
        return Err("Only one of append_if_not_found, prepend_if_not_found, insert_before_match, and \
                    insert_after_match is permitted");
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let line_end = if lines.first().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
    let mut content = block.content.replace("\r\n", "\n").replace('\n', line_end);
    if block.append_newline.unwrap_or(!block.content.ends_with('\n')) {
        content.push_str(line_end);
    }
    let (mut after, mut in_block, mut is_found) = (String::with_capacity(text.len()), false, false);
    for line in &lines {
        if line.contains(&block.start) {
            in_block = true;
            after.push_str(line);
        } else if !in_block {
            after.push_str(line);
        } else if let Some(at) = line.find(&block.end) {
            // Text before the end marker on its line belongs to the content, and is replaced.
            (in_block, is_found) = (false, true);
            after.extend([content.as_str(), line[at..].trim_end_matches(['\r', '\n']), line_end]);
        }
    }
    if in_block {
        return Err("Unterminated marked block. End of file reached before marker_end.");
    }
    if is_found {
        return Ok(after);
    }
    let whole = format!("{}{line_end}{content}{}{line_end}", block.start, block.end);
    let place = |pattern: &Option<String>| {
        let regex = compile(pattern.as_deref()?, &0.into()).ok()?;
        lines.iter().position(|line| regex.is_match(line).unwrap_or(false))
    };
    let before = place(&block.insert_before_match).or_else(|| place(&block.insert_after_match).map(|at| at + 1));
    if let Some(at) = before {
        let above = lines[..at].concat();
        let separator = if above.is_empty() || above.ends_with('\n') { "" } else { line_end };
        return Ok(format!("{above}{separator}{whole}{}", lines[at..].concat()));
    }
    let separator = if text.is_empty() || text.ends_with('\n') { "" } else { line_end };
    match (block.append_if_not_found, block.prepend_if_not_found) {
        (true, _) => Ok(format!("{text}{separator}{whole}")),
        (_, true) => Ok(format!("{whole}{text}")),
        _ => Err("Cannot edit marked block. Markers were not found in file."),
    }
}

#[cfg(test)]
mod tests;
