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
    /// Number of lines of a key that stay: further ones are removed, and those of a negative count are all set.
    pub count: i64,
    pub uncomment: Option<String>,
    pub key_ignore_case: bool,
    pub value_ignore_case: bool,
    pub create_if_missing: bool,
    /// Whether lines of other keys are removed.
    pub prune: bool,
}

pub(super) fn state(context: &StateContext, name: &str, desired: &Desired) -> StateReturn {
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let pairs: Map = match (&desired.key, &desired.key_values) {
        (Some(_), Value::Map(_)) if !desired.value.is_nil() => {
            return StateReturn::failed(name, "file.keyvalue can not combine key_values with key and value");
        }
        (Some(key), _) if !desired.value.is_nil() => map! {key.as_str() => desired.value.clone()},
        (_, Value::Map(pairs)) if !pairs.is_empty() => pairs.clone(),
        (_, other) => {
            let problem = if other.is_truthy() { "not a dictionary" } else { "empty" };
            let comment = format!("file.keyvalue key and value not supplied and key_values is {problem}");
            return StateReturn::failed(name, comment);
        }
    };
    let path = Path::new(name);
    let is_new = desired.create_if_missing && !path.exists();
    let text = match user_files::read_to_string(path) {
        Ok(text) => text,
        Err(_) if is_new => String::new(),
        Err(_) => {
            let mut missing = StateReturn::failed(name, format!("unable to open {name}"));
            missing.result = Some(desired.ignore_if_missing);
            return missing;
        }
    };
    let edit = edited(&text, &pairs, desired, is_new);
    if edit.diff.is_empty() {
        return StateReturn::ok(name, "");
    }
    let report = edit.diff.concat();
    let changes = if desired.show_changes {
        map! {"diff" => report}
    } else {
        Map::new()
    };
    if context.test {
        let mut comment =
            format!("File {name} is set to be changed ({} lines modified, {} deleted)", edit.changed, edit.deleted);
        if desired.show_changes {
            let lines = edit.diff.join("\r\t\t");
            comment = format!("{comment}\nPredicted diff:\n\r\t\t{lines}");
        }
        return StateReturn::predicted(name, comment).with_changes(changes);
    }
    let written = if path.exists() {
        write(path, edit.text.as_bytes(), &Value::Nil, true)
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

/// Sets the values in a text. The keys of a new file are all appended.
fn edited(text: &str, pairs: &Map, desired: &Desired, is_new: bool) -> Edit {
    let same = |a: &str, b: &str, ignore_case: bool| if ignore_case { a.eq_ignore_ascii_case(b) } else { a == b };
    let mut edit = Edit { text: String::new(), diff: Vec::new(), changed: 0, deleted: 0 };
    let (mut left, mut pruned) = (vec![desired.count; pairs.len()], Vec::new());
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\r', '\n']);
        let plain = uncommented(bare, desired.uncomment.as_deref());
        if desired.prune && !pairs.keys().any(|key| starts(plain, &key.to_string(), desired.key_ignore_case)) {
            pruned.push(format!("- {bare}\n"));
            continue;
        }
        let pair = plain.split_once(desired.separator.as_str()).and_then(|(have_key, have)| {
            let is_key = |key: &Value| same(have_key.trim_end(), key.to_string().trim(), desired.key_ignore_case);
            let index = pairs.keys().position(is_key)?;
            Some((index, pairs.get_index(index)?.1, have_key, have))
        });
        let Some((index, value, have_key, have)) = pair else {
            edit.text.push_str(line);
            continue;
        };
        let is_set = same(have.trim(), value.to_string().trim(), desired.value_ignore_case);
        let is_comment = plain.len() < bare.len();
        let changes = if is_comment { left[index] > 0 } else { !is_set || left[index] == 0 };
        let is_removed = left[index] == 0;
        left[index] -= i64::from(left[index] > 0);
        if !changes || desired.search_only {
            edit.text.push_str(line);
            continue;
        }
        edit.diff.push(format!("- {bare}\n"));
        edit.changed += 1;
        if is_removed {
            continue;
        }
        // Blanks before the separator are kept, and then those behind it.
        let gap = if have_key.ends_with([' ', '\t']) { &have[..have.len() - have.trim_start().len()] } else { "" };
        let new = format!("{have_key}{}{gap}{value}", desired.separator);
        edit.diff.push(format!("+ {new}{}\n", type_note(value)));
        edit.text.push_str(&new);
        edit.text.push_str(&line[bare.len()..]);
    }
    let missing = pairs.iter().zip(&left).filter(|(_, left)| **left > 0);
    let missing: Vec<String> =
        missing.map(|((key, value), _)| format!("{key}{}{value}\n", desired.separator)).collect();
    if missing.is_empty() || desired.search_only {
        // There is nothing to add.
    } else if desired.append_if_not_found || is_new {
        edit.diff.push("- <EOF>\n".into());
        edit.diff.extend(missing.iter().map(|line| format!("+ {line}")));
        edit.diff.push("+ <EOF>\n".into());
        if !edit.text.is_empty() && !edit.text.ends_with('\n') {
            edit.text.push('\n');
        }
        edit.text.push_str(&missing.concat());
        edit.changed += missing.len();
    } else if desired.prepend_if_not_found {
        // The last key comes first, as in Salt.
        let lines: Vec<String> = missing.into_iter().rev().collect();
        edit.diff.splice(0..0, std::iter::once("  <SOF>\n".into()).chain(lines.iter().map(|line| format!("+ {line}"))));
        edit.text.insert_str(0, &lines.concat());
        edit.changed += lines.len();
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

/// Returns a line without the leading characters of `characters`, by default blanks.
fn uncommented<'l>(line: &'l str, characters: Option<&str>) -> &'l str {
    match characters {
        Some(characters) => line.trim_start_matches(|letter| characters.contains(letter)),
        None => line.trim_start(),
    }
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

    const DESIRED: Desired = Desired {
        key: None,
        value: Value::Nil,
        key_values: Value::Nil,
        separator: String::new(),
        append_if_not_found: false,
        prepend_if_not_found: false,
        search_only: false,
        show_changes: true,
        ignore_if_missing: false,
        count: 1,
        uncomment: None,
        key_ignore_case: false,
        value_ignore_case: false,
        create_if_missing: false,
        prune: false,
    };

    #[test]
    fn values_are_set_in_as_many_lines_as_count_allows() {
        let one = |text: &str| map! {"A" => text};
        let desired = |count: i64, uncomment: Option<&str>, append: bool| Desired {
            separator: "=".into(),
            count,
            uncomment: uncomment.map(str::to_owned),
            append_if_not_found: append,
            ..DESIRED
        };
        for (text, pairs, desired, after, changed) in [
            ("A=1\nb=2\n", one("x"), desired(1, None, false), "A=x\nb=2\n", 1),
            ("A = 1\n", one("1"), desired(1, None, false), "A = 1\n", 0),
            ("A = 1\n", one("x"), desired(1, None, false), "A = x\n", 1),
            ("A=  1\n", one("x"), desired(1, None, false), "A=x\n", 1),
            ("  A=x\n", one("x"), desired(1, None, false), "A=x\n", 1),
            ("A=1\nA=2\n", one("x"), desired(1, None, false), "A=x\n", 2),
            ("A=x\nA=x\n", one("x"), desired(1, None, false), "A=x\n", 1),
            ("A=1\nA=2\nA=3\n", one("x"), desired(2, None, false), "A=x\nA=x\n", 3),
            ("A=1\nA=2\n", one("x"), desired(-1, None, false), "A=x\nA=x\n", 2),
            ("A=1\nb\nA=2\n", one("x"), desired(0, None, false), "b\n", 2),
            ("b\n", one("x"), desired(0, None, true), "b\n", 0),
            ("#A=1\n", one("1"), desired(1, Some("#"), false), "A=1\n", 1),
            (";# A=1\n", one("1"), desired(1, Some("# ;"), false), "A=1\n", 1),
            ("# A=1\n", one("1"), desired(1, Some("#"), false), "# A=1\n", 0),
            ("#A=1\n#A=2\n", one("x"), desired(1, Some("#"), false), "A=x\n#A=2\n", 1),
            ("#A=1\nA=2\n", one("x"), desired(1, Some("#"), false), "A=x\n", 2),
            ("#A=1\n", one("1"), desired(1, None, true), "#A=1\nA=1\n", 1),
            ("x", map! {"A" => 1}, Desired { separator: " ".into(), ..desired(1, None, true) }, "x\nA 1\n", 1),
            (
                "b\n",
                map! {"A" => 1, "C" => 2},
                Desired { prepend_if_not_found: true, ..desired(1, None, false) },
                "C=2\nA=1\nb\n",
                2,
            ),
        ] {
            let edit = edited(text, &pairs, &desired, false);
            assert_eq!((edit.text.as_str(), edit.changed), (after, changed), "{text:?} {}", desired.count);
        }
        let edit = edited("", &map! {"A" => "x", "B" => 2}, &desired(1, None, false), true);
        assert_eq!(edit.text, "A=x\nB=2\n");
    }
}
