//! `file.comment` and `file.uncomment`.

use brine_context::{StateContext, StateReturn};
use brine_value::{Value, map};

use super::edit::{Messages, finish, read};
use crate::file::edit::compile;

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
    // The anchors apply to the line without its comment prefix.
    let bare = regex.trim_start_matches('^').trim_end_matches('$');
    let start = "^[ \t]*";
    let end = if regex.ends_with('$') { "$" } else { "" };
    let sign = regex::escape(char);
    let plain = compile(&format!("{start}(?:{bare}){end}"), &8.into());
    let commented = compile(&format!("^[ \t]*{sign}[ \t]*(?:{bare}){end}"), &8.into());
    let (plain, commented) = match (plain, commented) {
        (Ok(plain), Ok(commented)) => (plain, commented),
        (Err(error), _) | (_, Err(error)) => return StateReturn::failed(name, error),
    };
    let is_commented = |line: &str| commented.is_match(line).unwrap_or(false);
    let is_plain = |line: &str| !line.trim_start().starts_with(char) && plain.is_match(line).unwrap_or(false);
    let mut after = String::with_capacity(before.len());
    let (mut changed, mut already) = (0, 0);
    for line in before.split_inclusive('\n') {
        let text = line.trim_end_matches(['\n', '\r']);
        if commenting && is_plain(text) {
            changed += 1;
            after.push_str(char);
            after.push_str(line);
        } else if !commenting && is_commented(text) {
            changed += 1;
            after.push_str(&line.replacen(char, "", 1));
        } else {
            already += i32::from(if commenting { is_commented(text) } else { is_plain(text) });
            after.push_str(line);
        }
    }
    if changed == 0 {
        return if already > 0 {
            StateReturn::ok(name, format!("Pattern already {}", if commenting { "commented" } else { "uncommented" }))
        } else if ignore_missing {
            StateReturn::ok(name, "Pattern not found and ignore_missing set to True")
        } else {
            StateReturn::failed(name, format!("{bare}: Pattern not found"))
        };
    }
    if context.test {
        return StateReturn::predicted(name, format!("File {name} is set to be updated"))
            .with_changes(map! {name => "updated"});
    }
    let done = if commenting { "Commented lines successfully" } else { "Uncommented lines successfully" };
    let messages = Messages { changed: done, pending: "", unchanged: done, backup, show_changes: true };
    finish(context, name, &before, &after, &messages)
}
