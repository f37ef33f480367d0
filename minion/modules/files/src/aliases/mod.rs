//! `aliases`: targets of mail aliases, in the file of the option `aliases.file` (`/etc/aliases`).

pub(crate) mod state;

use std::path::PathBuf;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::which;
use brine_system::files;
use brine_value::{Map, Value};
use parking_lot::Mutex;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `aliases`.
pub static FUNCTIONS: Functions<Context> =
    registry!("aliases", [list_aliases, get_target, has_target, set_target, rm_alias]);

/// Return all mail aliases with their targets.
///
/// CLI Example:
///
///     salt '*' aliases.list_aliases
#[function(out = "yaml")]
pub fn list_aliases(context: &Context) -> CallResult {
    let text = read(context)?;
    Ok(text
        .lines()
        .filter_map(Entry::parse)
        .map(|entry| (entry.alias.into(), entry.target.into()))
        .collect::<Map>()
        .into())
}

/// Return the target of a mail alias; an empty string if there is no such alias.
///
/// CLI Example:
///
///     salt '*' aliases.get_target alias
#[function(out = "txt")]
pub fn get_target(
    context: &Context,
    /// Alias.
    alias: String,
) -> CallResult {
    Ok(target(context, &alias)?.unwrap_or_default().into())
}

/// Return whether a mail alias has this target, or exactly the targets of a list, in this order.
///
/// CLI Example:
///
///     salt '*' aliases.has_target alias target
#[function(out = "txt")]
pub fn has_target(
    context: &Context,
    /// Alias.
    alias: String,
    /// Address, or list of addresses, that mail for the alias goes to.
    target: Value,
) -> CallResult {
    Ok(has(context, &alias, &target)?.into())
}

/// Set the target of a mail alias; a list sets several targets.
///
/// CLI Example:
///
///     salt '*' aliases.set_target alias target
#[function(out = "txt")]
pub fn set_target(
    context: &Context,
    /// Alias.
    alias: String,
    /// Address, or list of addresses, that mail for the alias goes to.
    target: Value,
) -> CallResult {
    if alias.is_empty() {
        return Err(CallError::execution("alias can not be an empty string"));
    }
    if !has(context, &alias, &target)? {
        edit(context, &alias, Some(&joined(&target)))?;
    }
    Ok(true.into())
}

/// Remove a mail alias.
///
/// CLI Example:
///
///     salt '*' aliases.rm_alias alias
#[function(out = "txt")]
pub fn rm_alias(
    context: &Context,
    /// Alias.
    alias: String,
) -> CallResult {
    if target(context, &alias)?.is_some() {
        edit(context, &alias, None)?;
    }
    Ok(true.into())
}

/// A line that defines an alias.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    alias: &'a str,
    target: &'a str,
    /// Comment after the target, with the blanks before its `#`.
    comment: &'a str,
}

impl<'a> Entry<'a> {
    /// Parses a line; `None` for comments, blank lines and lines that mail programs reject.
    fn parse(line: &'a str) -> Option<Self> {
        let (alias, rest) = line.split_once(':').filter(|(alias, _)| !alias.is_empty() && !alias.contains('#'))?;
        let rest = rest.trim_start();
        let end = rest.find('#').unwrap_or(rest.len());
        let target = rest.get(..end)?;
        // A `#` directly after a target, without a blank, does not start a comment.
        if end < rest.len() && !target.ends_with(char::is_whitespace) {
            return None;
        }
        let (target, comment) = rest.split_at(target.trim_end().len());
        let comment = if end < rest.len() { comment } else { "" };
        (!target.is_empty()).then_some(Entry { alias, target, comment })
    }
}

/// Whether an alias has this target.
pub fn has(context: &Context, alias: &str, expected: &Value) -> Result<bool, CallError> {
    if expected.as_str() == Some("") {
        return Err(CallError::execution("target can not be an empty string"));
    }
    Ok(target(context, alias)?.is_some_and(|have| have == joined(expected)))
}

/// Returns the target of an alias. The last line of an alias wins.
pub fn target(context: &Context, alias: &str) -> Result<Option<String>, CallError> {
    let text = read(context)?;
    let entry = text.lines().filter_map(Entry::parse).rfind(|entry| entry.alias == alias);
    Ok(entry.map(|entry| entry.target.to_owned()))
}

fn joined(target: &Value) -> String {
    match target.as_list() {
        Some(several) => several.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        None => target.to_string(),
    }
}

fn file(context: &Context) -> PathBuf {
    brine_config::opts::modules::aliases_file(&context.config().opts)
}

fn read(context: &Context) -> Result<String, CallError> {
    Ok(files::read_if_exists(file(context)).map_err(CallError::execution)?.unwrap_or_default())
}

/// Serializes edits of the file, because states may run in parallel.
static EDIT_LOCK: Mutex<()> = Mutex::new(());

/// Writes the file with this target of an alias, or without the alias, and runs `newaliases`.
fn edit(context: &Context, alias: &str, target: Option<&str>) -> Result<(), CallError> {
    let line = target.map(|target| format!("{alias}: {target}"));
    let is_read_back = |line: &String| {
        !line.contains('\n')
            && Entry::parse(line).is_some_and(|entry| entry.alias == alias && Some(entry.target) == target)
    };
    if let Some(line) = line.filter(|line| !is_read_back(line)) {
        let message = format!(
            "line of {} is invalid: expected no `:` or `#` in the alias, no `#` or newline in the target, got '{line}'",
            file(context).display()
        );
        return Err(CallError::Execution(message));
    }
    let _guard = EDIT_LOCK.lock();
    let text = with_alias(&read(context)?, alias, target);
    files::rewrite(file(context), text.as_bytes(), 0o644).map_err(CallError::execution)?;
    if which("newaliases").is_some() {
        run(context, &["newaliases".to_owned()], &[])?;
    }
    Ok(())
}

/// Returns the text with one line of the alias, in place of its first one or at the end; other lines are unchanged.
fn with_alias(text: &str, alias: &str, mut target: Option<&str>) -> String {
    let mut edited = String::new();
    for line in text.lines() {
        let line = match Entry::parse(line) {
            Some(entry) if entry.alias == alias => {
                let Some(target) = target.take() else { continue };
                format!("{alias}: {target}{}", entry.comment)
            }
            Some(entry) => format!("{}: {}{}", entry.alias, entry.target, entry.comment),
            None => line.trim().to_owned(),
        };
        edited += &line;
        edited.push('\n');
    }
    if let Some(target) = target {
        edited += &format!("{alias}: {target}\n");
    }
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_aliases_are_parsed() {
        for (line, expected) in [
            ("root: me@example.com", Some(("root", "me@example.com", ""))),
            ("root:a,  b  # both", Some(("root", "a,  b", "  # both"))),
            ("root: \"|/bin/x: y\"", Some(("root", "\"|/bin/x: y\"", ""))),
            ("root: a#b", None),
            ("root:", None),
            ("root: # nobody", None),
            ("# root: a", None),
            (": a", None),
            ("", None),
        ] {
            let actual = Entry::parse(line).map(|entry| (entry.alias, entry.target, entry.comment));
            assert_eq!(actual, expected, "{line}");
        }
    }

    #[test]
    fn duplicate_lines_of_an_alias_are_removed() {
        let text = "# mail\na: x # old\n\nb:y\na: z\nnobody:\n";
        for (alias, target, expected) in [
            ("a", Some("new"), "# mail\na: new # old\n\nb: y\nnobody:\n"),
            ("c", Some("new"), "# mail\na: x # old\n\nb: y\na: z\nnobody:\nc: new\n"),
            ("a", None, "# mail\n\nb: y\nnobody:\n"),
        ] {
            assert_eq!(with_alias(text, alias, target), expected, "{alias}");
        }
    }
}
