//! `ini`: states of options in INI files.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use crate::ini::{File, FormatArgs, Section};

/// State functions of `ini`.
pub static FUNCTIONS: Functions<StateContext> =
    registry!("ini", [options_present, options_absent, sections_present, sections_absent]);

/// Ensure that options have these values; with `strict`, other options are removed.
///
/// SLS Example:
///
///     /etc/php/8.2/fpm/php.ini:
///       ini.options_present:
///         - sections:
///             PHP:
///               memory_limit: 256M
///               expose_php: 'Off'
///             Date:
///               date.timezone: UTC
#[function]
pub fn options_present(
    context: &StateContext,
    /// Path of the file.
    name: String,
    /// Mapping of sections to mappings of options to values; an option beside the sections is above all sections.
    sections: Option<Map>,
    /// Text between option and value.
    #[default("=".into())]
    separator: String,
    /// Whether options of the given sections that are not listed are removed.
    #[default(false)]
    strict: bool,
    /// Encoding of the file; UTF-8 by default.
    encoding: Option<String>,
    /// Whether there are no spaces around the separator.
    #[default(false)]
    no_spaces: bool,
) -> CallResult {
    let file = File::new(&name, separator, encoding.as_deref(), no_spaces)?;
    let outcome = match (context.test, sections.unwrap_or_default()) {
        (true, sections) => predict(&file, &name, &sections, strict)?,
        (false, sections) => {
            let strict = strict && !sections.is_empty();
            let changes = file.edit(|ini, form| {
                let mut changes = if strict { remove_others(ini, &sections) } else { Map::new() };
                merge(&mut changes, ini.set(&sections, form));
                changes
            })?;
            report(&name, changes)
        }
    };
    Ok(outcome.into())
}

/// Ensure that options are absent: lists of options by section, or options above all sections by name.
///
/// SLS Example:
///
///     /etc/php/8.2/fpm/php.ini:
///       ini.options_absent:
///         - sections:
///             PHP:
///               - allow_url_fopen
#[function]
pub fn options_absent(
    context: &StateContext,
    /// Path of the file.
    name: String,
    /// Mapping of sections to lists of options; an option above all sections is listed by its name.
    sections: Option<Map>,
    #[args] format: FormatArgs,
) -> CallResult {
    let file = format.file(&name)?;
    let sections = sections.unwrap_or_default();
    if !context.test {
        let changes = file.edit(|ini, _| {
            let mut changes = Map::new();
            for (place, keys) in &sections {
                let section = place.to_string();
                let Some(keys) = keys_of(keys) else {
                    changes.extend(ini.remove(None, &section).map(|value| (place.clone(), value.into())));
                    continue;
                };
                let remove = |key: String| {
                    let value = ini.remove(Some(&section), &key).filter(|value| !value.is_empty())?;
                    Some((key.into(), value.into()))
                };
                let removed: Map = keys.into_iter().filter_map(remove).collect();
                if !removed.is_empty() {
                    changes.insert(place.clone(), removed.into());
                }
            }
            changes
        })?;
        return Ok(report(&name, changes).into());
    }
    let ini = file.read()?;
    let mut plan = Plan::default();
    for (place, keys) in &sections {
        let section = place.to_string();
        let within = if section.is_empty() { String::new() } else { format!(" in section {section}") };
        let Some(keys) = keys_of(keys) else {
            plan.remove(ini.top.get(&section), &format!("Key {section}"), &format!("key {section}"));
            continue;
        };
        for key in keys {
            let have = ini.sections.get(&section).and_then(|options| options.get(&key));
            plan.remove(have, &format!("Key {key}{within}"), &format!("key {key}{within}"));
        }
    }
    Ok(plan.report(&name, "No changes detected.").into())
}

/// Sections of a file.
#[derive(Args)]
pub struct SectionsArgs {
    /// Path of the file.
    name: String,
    /// Names of the sections, as a list or as the keys of a mapping.
    #[default]
    sections: Value,
    #[args]
    format: FormatArgs,
}

/// Ensure that sections are present.
///
/// SLS Example:
///
///     /etc/app.ini:
///       ini.sections_present:
///         - sections:
///             server:
///               port: 8080
#[function]
pub fn sections_present(context: &StateContext, #[args] args: SectionsArgs) -> CallResult {
    let (name, file) = (&*args.name, args.format.file(&args.name)?);
    let names = sections_of(&args.sections)?;
    if !context.test {
        let empty = names.into_iter().map(|section| (section.into(), Value::map())).collect();
        return Ok(report(name, file.edit(|ini, form| ini.set(&empty, form))?).into());
    }
    let ini = file.read()?;
    let mut plan = Plan::default();
    for section in names {
        let have = ini.sections.contains_key(&section);
        let line = if have { format!("Section unchanged {section}") } else { format!("Created new section {section}") };
        plan.add_line(!have, &line);
    }
    Ok(plan.report(name, "No changes detected.").into())
}

/// Ensure that sections are absent.
///
/// SLS Example:
///
///     /etc/app.ini:
///       ini.sections_absent:
///         - sections:
///           - legacy
#[function]
pub fn sections_absent(context: &StateContext, #[args] args: SectionsArgs) -> CallResult {
    let (name, file) = (&*args.name, args.format.file(&args.name)?);
    let unwanted = sections_of(&args.sections)?;
    let ini = file.read()?;
    if context.test {
        let mut plan = Plan::default();
        for section in unwanted {
            let have = ini.sections.get(&section).map(|_| "there");
            plan.remove(have, &format!("Section {section}"), &format!("section {section}"));
        }
        return Ok(plan.report(name, "No changes detected.").into());
    }
    // A missing file has no sections, and is not created.
    if !unwanted.iter().any(|section| ini.sections.contains_key(section)) {
        return Ok(report(name, Map::new()).into());
    }
    let remove = |ini: &mut crate::ini::Ini| {
        let gone =
            |section: String| ini.sections.shift_remove(&section).map(|gone| (section.into(), gone.describe().into()));
        unwanted.into_iter().filter_map(gone).collect()
    };
    Ok(report(name, file.edit(|ini, _| remove(ini))?).into())
}

/// Returns the names in a list or mapping; `None` for other types.
fn keys_of(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::List(keys) => Some(keys.iter().map(ToString::to_string).collect()),
        Value::Map(keys) => Some(keys.keys().map(ToString::to_string).collect()),
        _ => None,
    }
}

/// Returns the names of sections.
///
/// # Errors
/// An item of the list is a mapping or a list: its text is no name of a section.
fn sections_of(value: &Value) -> Result<Vec<String>, CallError> {
    let nested = value.as_list().into_iter().flatten().find(|item| matches!(item, Value::Map(_) | Value::List(_)));
    if let Some(item) = nested {
        let type_name = item.type_name();
        let message = format!(
            "sections is invalid: expected names, got {type_name} in the list; ini.options_present sets options"
        );
        return Err(CallError::Execution(message));
    }
    Ok(keys_of(value).unwrap_or_default())
}

/// Merges changes section by section.
fn merge(changes: &mut Map, more: Map) {
    for (name, change) in more {
        match (changes.get_mut(&name), change) {
            (Some(Value::Map(have)), Value::Map(change)) => have.extend(change),
            (_, change) => _ = changes.insert(name, change),
        }
    }
}

/// Removes options that are not desired, and returns the changes.
fn remove_others(ini: &mut crate::ini::Ini, desired: &Map) -> Map {
    let gone = |before: Value| -> Value { map! {"before" => before, "after" => Value::Nil}.into() };
    let mut changes = Map::new();
    for (name, value) in others(&ini.top, |name| desired.get(name).is_some_and(|body| body.as_map().is_none())) {
        ini.top.remove(&name);
        changes.insert(name.into(), gone(value.into()));
    }
    let mut sections = Vec::new();
    for (name, section) in &mut ini.sections {
        let Some(Value::Map(options)) = desired.get(name.as_str()) else {
            sections.push((name.clone(), section.describe()));
            continue;
        };
        let mut removed = Map::new();
        for (option, value) in others(section, |option| options.contains_key(option)) {
            section.remove(&option);
            removed.insert(option.into(), gone(value.into()));
        }
        if !removed.is_empty() {
            changes.insert(name.as_str().into(), removed.into());
        }
    }
    for (name, options) in sections {
        ini.sections.shift_remove(&name);
        changes.insert(name.into(), gone(options.into()));
    }
    changes
}

/// Returns the options that are not desired.
fn others(section: &Section, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let others = section.options().filter(|(name, _)| !is_wanted(name));
    others.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn report(name: &str, changes: Map) -> StateReturn {
    let comment = if changes.is_empty() { "No anomaly detected" } else { "Changes take effect" };
    StateReturn::ok(name, comment).with_changes(changes)
}

/// Predicted changes, one line each.
#[derive(Default)]
struct Plan {
    lines: String,
    changes: bool,
}

impl Plan {
    fn add_line(&mut self, changes: bool, line: &str) {
        self.lines = format!("{}{line}.\n", self.lines);
        self.changes |= changes;
    }

    fn remove(&mut self, have: Option<&str>, what: &str, small: &str) {
        match have.filter(|have| !have.is_empty()) {
            Some(_) => self.add_line(true, &format!("Deleted {small}")),
            None => self.add_line(false, &format!("{what} does not exist")),
        }
    }

    fn report(self, name: &str, nothing: &str) -> StateReturn {
        let comment = if self.lines.is_empty() { nothing } else { &self.lines };
        if self.changes { StateReturn::predicted(name, comment) } else { StateReturn::ok(name, comment) }
    }
}

fn predict(file: &File, name: &str, desired: &Map, strict: bool) -> Result<StateReturn, CallError> {
    let ini = file.read()?;
    let mut plan = Plan::default();
    let (sections, options): (Vec<_>, Vec<_>) = desired.iter().partition(|(_, body)| body.as_map().is_some());
    let set = |plan: &mut Plan, have: Option<&str>, option: &Value, value: &Value, within: &str| {
        let same = have == Some(value.to_string().as_str());
        plan.add_line(!same, &format!("{} key {option}{within}", if same { "Unchanged" } else { "Changed" }));
    };
    for (option, value) in options {
        set(&mut plan, ini.top.get(&option.to_string()), option, value, "");
    }
    if strict && !desired.is_empty() {
        for (option, _) in others(&ini.top, |name| desired.get(name).is_some_and(|body| body.as_map().is_none())) {
            plan.add_line(true, &format!("Removed key {option}"));
        }
        for section in ini.sections.keys() {
            if desired.get(section.as_str()).is_none_or(|body| body.as_map().is_none()) {
                plan.add_line(true, &format!("Removed section {section}"));
            }
        }
    }
    for (section, body) in sections {
        let (section, body) = (section.to_string(), body.as_map().cloned().unwrap_or_default());
        let within = if section.is_empty() { String::new() } else { format!(" in section {section}") };
        let have = ini.sections.get(&section).cloned().unwrap_or_default();
        if strict {
            for (option, _) in others(&have, |option| body.contains_key(option)) {
                plan.add_line(true, &format!("Deleted key {option}{within}"));
            }
        }
        for (option, value) in &body {
            set(&mut plan, have.get(&option.to_string()), option, value, &within);
        }
    }
    Ok(plan.report(name, ""))
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_value::list;

    use super::*;
    use crate::testing;

    #[test]
    fn sections_are_created_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.ini").display().to_string();
        std::fs::write(&path, "[one]\na = 1\n").unwrap();
        let call = |test| {
            let context = testing::state_context(test, &[]);
            let args = Args::keyword(map! {"name" => &path, "sections" => list!["one", "two"]});
            let outcome = context.call.minion.states.call(&context, "ini.sections_present", args).unwrap();
            ["result", "comment", "changes"].map(|key| outcome.get(key).cloned().unwrap())
        };
        let new: Value = map! {"two" => map! {"before" => Value::Nil, "after" => map! {}}}.into();
        let would = "Section unchanged one.\nCreated new section two.\n";
        assert_eq!(call(true), [Value::Nil, would.into(), Value::map()]);
        assert_eq!(call(false), [true.into(), "Changes take effect".into(), new]);
        assert_eq!(call(false), [true.into(), "No anomaly detected".into(), Value::map()]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[one]\na = 1\n\n[two]\n");
    }

    #[test]
    fn files_keep_their_encoding() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.ini");
        for (encoding, before, after) in [
            ("utf-16", &b""[..], &b"\xff\xfe[\0a\0]\0\n\0b\0 \0=\0 \0\xfc\0\n\0"[..]),
            ("latin-1", b"[\xe9]\nk = 1\n[a]\nb = \xe4\n", b"[\xe9]\nk = 1\n\n[a]\nb = \xfc\n"),
        ] {
            std::fs::write(&path, before).unwrap();
            for _ in 0..2 {
                let context = testing::state_context(false, &[]);
                let sections = map! {"a" => map! {"b" => "\u{fc}"}};
                let name = path.display().to_string();
                let args = Args::keyword(map! {"name" => name, "sections" => sections, "encoding" => encoding});
                context.call.minion.states.call(&context, "ini.options_present", args).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), after, "{encoding}");
            }
        }
    }

    #[test]
    fn a_mapping_in_a_list_is_no_section() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.ini").display().to_string();
        for fun in ["ini.sections_present", "ini.sections_absent"] {
            let context = testing::state_context(false, &[]);
            let args =
                Args::keyword(map! {"name" => &path, "sections" => list!["one", map! {"two" => map! {"a" => 1}}]});
            let error = context.call.minion.states.call(&context, fun, args).unwrap_err().to_string();
            assert!(error.contains("sections is invalid: expected names"), "{error}");
            assert!(!std::path::Path::new(&path).exists());
        }
    }
}
