//! `file.keyvalue`: values of keys in a file of `key = value` lines.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_system::user_files;
use brine_value::{Map, Value, map};

use super::edit::write;
use super::invalid_path;

/// The arguments of `file.keyvalue`.
pub(super) struct Desired {
    pub key: Option<String>,
    pub value: Value,
    pub key_values: Value,
    pub separator: String,
    pub append_if_not_found: bool,
    pub prepend_if_not_found: bool,
    pub search_only: bool,
    pub show_changes: bool,
    pub ignore_if_missing: bool,
    pub count: usize,
    pub uncomment: Option<String>,
    pub key_ignore_case: bool,
    pub value_ignore_case: bool,
    pub create_if_missing: bool,
    /// Whether lines of other keys are removed.
    pub prune: bool,
}

pub(super) fn state(context: &StateContext, name: &str, wanted: &Desired) -> StateReturn {
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let pairs: Map = match (&wanted.key, &wanted.key_values) {
        (_, Value::Map(pairs)) if !pairs.is_empty() => pairs.clone(),
        (_, given) if given.is_truthy() => {
            return StateReturn::failed(name, "file.keyvalue key_values is not a dictionary");
        }
        (Some(key), _) if !wanted.value.is_nil() => map! {key.as_str() => wanted.value.clone()},
        _ => {
            return StateReturn::failed(name, "file.keyvalue key and value not supplied and key_values is empty");
        }
    };
    let path = Path::new(name);
    let text = match user_files::read_to_string(path) {
        Ok(text) => text,
        Err(_) if !path.exists() && wanted.create_if_missing => String::new(),
        Err(_) => {
            let mut missing = StateReturn::failed(name, format!("unable to open {name}"));
            missing.result = Some(wanted.ignore_if_missing);
            return missing;
        }
    };
    let edit = edited(&text, &pairs, wanted);
    if edit.diff.is_empty() {
        return StateReturn::ok(name, "");
    }
    let report = edit.diff.concat();
    let changes = if wanted.show_changes {
        map! {"diff" => report}
    } else {
        Map::new()
    };
    if context.test {
        let mut comment =
            format!("File {name} is set to be changed ({} lines modified, {} deleted)", edit.changed, edit.deleted);
        if wanted.show_changes {
            let lines = edit.diff.join("\r\t\t");
            comment = format!("{comment}\nPredicted diff:\n\r\t\t{lines}");
        }
        return StateReturn::predicted(name, comment).with_changes(changes);
    }
    let written = if path.exists() {
        write(path, &edit.text, &Value::Nil)
    } else {
        user_files::write(path, &edit.text).map_err(|error| format!("Failed to create {name}: {error}"))
    };
    match written {
        Ok(()) => StateReturn::ok(name, format!("Changed {}, deleted {} lines", edit.changed, edit.deleted))
            .with_changes(changes),
        Err(error) => StateReturn::failed(name, error),
    }
}

/// The edited text, and the diff to report.
struct Edit {
    text: String,
    diff: Vec<String>,
    changed: usize,
    deleted: usize,
}

fn edited(text: &str, pairs: &Map, wanted: &Desired) -> Edit {
    let same = |a: &str, b: &str, ignore_case: bool| if ignore_case { a.eq_ignore_ascii_case(b) } else { a == b };
    let mut edit = Edit { text: String::new(), diff: Vec::new(), changed: 0, deleted: 0 };
    let (mut done, mut pruned) = (vec![0; pairs.len()], Vec::new());
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\r', '\n']);
        let (plain, was_comment) = match wanted.uncomment.as_deref().and_then(|sign| uncommented(bare, sign)) {
            Some(plain) => (plain, true),
            None => (bare, false),
        };
        if wanted.prune && !pairs.keys().any(|key| starts(plain, &key.to_string(), wanted.key_ignore_case)) {
            pruned.push(format!("- {bare}\n"));
            continue;
        }
        let Some((have_key, have)) = plain.split_once(wanted.separator.as_str()) else {
            edit.text.push_str(line);
            continue;
        };
        let index = pairs.keys().position(|key| same(have_key.trim(), key.to_string().trim(), wanted.key_ignore_case));
        let Some((index, value)) = index.and_then(|index| Some((index, pairs.get_index(index)?.1))) else {
            edit.text.push_str(line);
            continue;
        };
        done[index] += 1;
        let is_same = same(have.trim(), value.to_string().trim(), wanted.value_ignore_case);
        let over = wanted.count > 0 && done[index] > wanted.count;
        if over || wanted.search_only || (is_same && !was_comment) {
            edit.text.push_str(line);
            continue;
        }
        // The blanks around the separator are kept.
        let gap = &have[..have.len() - have.trim_start().len()];
        let new = format!("{}{}{gap}{value}", have_key.trim_start(), wanted.separator);
        edit.diff.push(format!("- {bare}\n"));
        edit.diff.push(format!("+ {new}{}\n", type_note(value)));
        edit.changed += 1;
        edit.text.push_str(&new);
        edit.text.push_str(&line[bare.len()..]);
    }
    let missing: Vec<String> = pairs
        .iter()
        .zip(&done)
        .filter(|(_, done)| **done == 0)
        .map(|((key, value), _)| format!("{key}{}{value}\n", wanted.separator))
        .collect();
    let lines = missing.iter().map(|line| format!("+ {line}"));
    if missing.is_empty() || wanted.search_only {
        // Missing keys are added below.
    } else if wanted.append_if_not_found {
        edit.diff.push("- <EOF>\n".into());
        edit.diff.extend(lines);
        edit.diff.push("+ <EOF>\n".into());
        if !edit.text.is_empty() && !edit.text.ends_with('\n') {
            edit.text.push('\n');
        }
        edit.text.push_str(&missing.concat());
        edit.changed += missing.len();
    } else if wanted.prepend_if_not_found {
        edit.diff.push("  <SOF>\n".into());
        edit.diff.extend(lines);
        edit.text = format!("{}{}", missing.concat(), edit.text);
        edit.changed += missing.len();
    }
    edit.deleted = pruned.len();
    // Pruned lines are reported after the first line, in reverse order, as in Salt.
    let index = edit.diff.len().min(1);
    edit.diff.splice(index..index, pruned.into_iter().rev());
    edit
}

/// Whether a line starts with a key.
fn starts(line: &str, key: &str, ignore_case: bool) -> bool {
    if ignore_case { line.to_lowercase().starts_with(&key.to_lowercase()) } else { line.starts_with(key) }
}

/// Returns a line without its comment prefix, if it has one.
fn uncommented<'l>(line: &'l str, sign: &str) -> Option<&'l str> {
    let start = line.trim_start();
    start.strip_prefix(sign).or_else(|| start.strip_prefix(sign.trim_end())).map(str::trim_start)
}

/// Returns the note on a value that is not a string.
fn type_note(value: &Value) -> String {
    match value {
        Value::Str(_) => String::new(),
        other => format!(" (from {} type)", other.type_name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_changed_in_their_lines() {
        let wanted = |separator: &str, uncomment: Option<&str>, append: bool| Desired {
            key: None,
            value: Value::Nil,
            key_values: Value::Nil,
            separator: separator.into(),
            append_if_not_found: append,
            prepend_if_not_found: false,
            search_only: false,
            show_changes: true,
            ignore_if_missing: false,
            count: 0,
            uncomment: uncomment.map(str::to_owned),
            key_ignore_case: false,
            value_ignore_case: false,
            create_if_missing: false,
            prune: false,
        };
        for (text, pairs, wanted, after, changed) in [
            ("a=1\nb=2\n", map! {"a" => "9"}, wanted("=", None, false), "a=9\nb=2\n", 1),
            ("a = 1\n", map! {"a" => "1"}, wanted("=", None, false), "a = 1\n", 0),
            ("#a=1\n", map! {"a" => "1"}, wanted("=", Some("#"), false), "a=1\n", 1),
            ("#a=1\n", map! {"a" => "1"}, wanted("=", None, true), "#a=1\na=1\n", 1),
            ("x", map! {"a" => 1}, wanted(" ", None, true), "x\na 1\n", 1),
        ] {
            let edit = edited(text, &pairs, &wanted);
            assert_eq!((edit.text.as_str(), edit.changed), (after, changed));
        }
    }
}
