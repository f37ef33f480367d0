//! `file.comment` and `file.uncomment`.

use brine_context::{StateContext, StateReturn};
use brine_value::{Value, map};

use super::edit::{Messages, finish, read};
use crate::file::edit::{commented, compile, unanchored};
use crate::file::encoding::Encoding;

/// Python's flag `MULTILINE`.
const MULTILINE: i64 = 8;

/// Applies `file.comment` and, in reverse, `file.uncomment`.
pub(super) fn comment(
    context: &StateContext,
    name: &str,
    regex: &str,
    char: &str,
    backup: &Value,
    ignore_missing: bool,
    commenting: bool,
) -> StateReturn {
    let before = match read(name) {
        Ok(before) => before,
        Err(error) => return StateReturn::failed(name, error),
    };
    let (bare, end) = unanchored(regex);
    let sign = regex::escape(char);
    // As in Salt, indented lines and comments are found, too; only lines that begin with a match are changed.
    let (pending, already, expected) = if commenting {
        (format!(r"^(?!\s*{sign})\s*(?:{bare}){end}"), format!("{sign}(?:{bare}){end}"), format!("{sign}(?:{bare})"))
    } else {
        let plain = format!("^[ \t]*(?:{bare}){end}");
        (format!("{sign}[ \t]*(?:{bare}){end}"), plain.clone(), plain)
    };
    let is_in = |pattern: &str, text: &str| {
        let regex = compile(pattern, &MULTILINE.into())?;
        Ok::<_, String>(text.lines().any(|line| regex.is_match(line).unwrap_or(false)))
    };
    let (is_pending, is_already) = match (is_in(&pending, &before), is_in(&already, &before)) {
        (Ok(pending), Ok(already)) => (pending, already),
        (Err(error), _) | (_, Err(error)) => return StateReturn::failed(name, error),
    };
    if !is_pending {
        return if is_already {
            StateReturn::ok(name, format!("Pattern already {}", if commenting { "commented" } else { "uncommented" }))
        } else if ignore_missing {
            StateReturn::ok(name, "Pattern not found and ignore_missing set to True")
        } else {
            StateReturn::failed(name, format!("{}: Pattern not found", if commenting { bare } else { regex }))
        };
    }
    if context.test {
        return StateReturn::predicted(name, format!("File {name} is set to be updated"))
            .with_changes(map! {name => "updated"});
    }
    let after = match commented(&before, regex, char, commenting, true) {
        Ok(result) => result.text,
        Err(error) => return StateReturn::failed(name, error),
    };
    let (verb, past) = if commenting { ("Commented", "commented") } else { ("Uncommented", "uncommented") };
    if !is_in(&expected, &after).unwrap_or(false) {
        return StateReturn::failed(name, format!("Expected {past} lines not found"));
    }
    let message = format!("{verb} lines successfully");
    let messages = Messages {
        changed: &message,
        pending: "",
        unchanged: &message,
        backup,
        show_changes: true,
        encoding: Encoding::Utf8,
        keeps_links: false,
    };
    finish(context, name, &before, &after, &messages)
}
