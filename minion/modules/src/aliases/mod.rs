//! `aliases`: whom mail for a local name goes to, in the file that the option `aliases.file` names, which is
//! `/etc/aliases`.

pub(crate) mod state;

use std::path::PathBuf;

use brine_context::programs::run;
use brine_context::{Context, Room};
use brine_function::{CallError, CallResult, Function, function, registry};
use brine_host::programs::which;
use brine_system::files;
use brine_value::{Map, Value};
use parking_lot::Mutex;

/// All functions of this room.
pub(super) static ROOM: Room = Room { functions: &[FUNCTIONS], states: &[state::FUNCTIONS], ..Room::EMPTY };

/// Execution functions of `aliases`.
pub static FUNCTIONS: &[Function<Context>] =
    registry!("aliases", [list_aliases, get_target, has_target, set_target, rm_alias]);

/// All aliases, with what they stand for.
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

/// What an alias stands for; an empty text if it is not there.
///
/// CLI Example:
///
///     salt '*' aliases.get_target alias
#[function(out = "txt")]
pub fn get_target(context: &Context, alias: String) -> CallResult {
    Ok(target(context, &alias)?.unwrap_or_default().into())
}

/// Whether an alias stands for this, or for all of a list in its order.
///
/// CLI Example:
///
///     salt '*' aliases.has_target alias target
#[function(out = "txt")]
pub fn has_target(context: &Context, alias: String, target: Value) -> CallResult {
    Ok(has(context, &alias, &target)?.into())
}

/// Has an alias stand for this, or for all of a list.
///
/// CLI Example:
///
///     salt '*' aliases.set_target alias target
#[function(out = "txt")]
pub fn set_target(context: &Context, alias: String, target: Value) -> CallResult {
    if alias.is_empty() {
        return Err(CallError::execution("alias can not be an empty string"));
    }
    if !has(context, &alias, &target)? {
        edit(context, &alias, Some(&joined(&target)))?;
    }
    Ok(true.into())
}

/// Removes an alias.
///
/// CLI Example:
///
///     salt '*' aliases.rm_alias alias
#[function(out = "txt")]
pub fn rm_alias(context: &Context, alias: String) -> CallResult {
    if target(context, &alias)?.is_some() {
        edit(context, &alias, None)?;
    }
    Ok(true.into())
}

/// A line that says what an alias stands for.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    alias: &'a str,
    target: &'a str,
    /// What stands behind it, from the blanks before the `#`.
    comment: &'a str,
}

impl<'a> Entry<'a> {
    /// Nothing if the line is another one: a comment, a blank one, or one that mail programs do not take either.
    fn parse(line: &'a str) -> Option<Self> {
        let (alias, rest) = line.split_once(':').filter(|(alias, _)| !alias.is_empty() && !alias.contains('#'))?;
        let rest = rest.trim_start();
        let end = rest.find('#').unwrap_or(rest.len());
        let target = rest.get(..end)?;
        // What stands right behind a target, without a blank, is no comment.
        if end < rest.len() && !target.ends_with(char::is_whitespace) {
            return None;
        }
        let (target, comment) = rest.split_at(target.trim_end().len());
        let comment = if end < rest.len() { comment } else { "" };
        (!target.is_empty()).then_some(Entry { alias, target, comment })
    }
}

/// Whether an alias stands for this.
pub fn has(context: &Context, alias: &str, wanted: &Value) -> Result<bool, CallError> {
    if wanted.as_str() == Some("") {
        return Err(CallError::execution("target can not be an empty string"));
    }
    Ok(target(context, alias)?.is_some_and(|have| have == joined(wanted)))
}

/// What an alias stands for, if it is there. Of several lines the last one holds.
pub fn target(context: &Context, alias: &str) -> Result<Option<String>, CallError> {
    let text = read(context)?;
    let found = text.lines().filter_map(Entry::parse).rfind(|entry| entry.alias == alias);
    Ok(found.map(|entry| entry.target.to_owned()))
}

fn joined(target: &Value) -> String {
    match target.as_list() {
        Some(several) => several.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        None => target.to_string(),
    }
}

fn file(context: &Context) -> PathBuf {
    let named = context.config().opts.get("aliases.file").and_then(Value::as_str);
    named.filter(|path| !path.is_empty()).unwrap_or("/etc/aliases").into()
}

fn read(context: &Context) -> Result<String, CallError> {
    Ok(files::read_if_exists(file(context)).map_err(CallError::execution)?.unwrap_or_default())
}

/// Held while the file is read and written anew: states run side by side.
static CHANGING: Mutex<()> = Mutex::new(());

/// Writes the file with this target of an alias, or without the alias, and has the mail program read it.
fn edit(context: &Context, alias: &str, target: Option<&str>) -> Result<(), CallError> {
    let line = target.map(|target| format!("{alias}: {target}"));
    let is_read_back = |line: &String| {
        !line.contains('\n')
            && Entry::parse(line).is_some_and(|entry| entry.alias == alias && Some(entry.target) == target)
    };
    if let Some(line) = line.filter(|line| !is_read_back(line)) {
        let told = format!(
            "'{line}' is no line of {}: no `:` or `#` in a name, no `#` or line end behind it",
            file(context).display()
        );
        return Err(CallError::Execution(told));
    }
    let _changing = CHANGING.lock();
    let text = with(&read(context)?, alias, target);
    files::rewrite(file(context), text.as_bytes(), 0o644).map_err(CallError::execution)?;
    if which("newaliases").is_some() {
        run(context, &["newaliases".to_owned()], &[])?;
    }
    Ok(())
}

/// The text with one line of an alias, where its first one was or at the end; lines that say nothing of an alias stay.
fn with(text: &str, alias: &str, mut target: Option<&str>) -> String {
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
    fn lines_say_what_an_alias_stands_for() {
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
            let found = Entry::parse(line).map(|entry| (entry.alias, entry.target, entry.comment));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn one_line_of_an_alias_is_left() {
        let text = "# mail\na: x # old\n\nb:y\na: z\nnobody:\n";
        for (alias, target, expected) in [
            ("a", Some("new"), "# mail\na: new # old\n\nb: y\nnobody:\n"),
            ("c", Some("new"), "# mail\na: x # old\n\nb: y\na: z\nnobody:\nc: new\n"),
            ("a", None, "# mail\n\nb: y\nnobody:\n"),
        ] {
            assert_eq!(with(text, alias, target), expected, "{alias}");
        }
    }
}
