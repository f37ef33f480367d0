//! `file.line`: one line of a file, found by its content or its position.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::CallError;
use brine_system::user_files;
use brine_value::map;

use super::attributes::Attributes;
use super::invalid_path;
use crate::file::changes::{keep_dated, rewrite_without_setuid};
use crate::file::diff::unified;
use crate::file::line::{Line, edited};

/// The arguments of `file.line`.
pub(super) struct Desired {
    pub line: Line,
    pub mode: Option<String>,
    pub show_changes: bool,
    pub backup: bool,
    pub quiet: bool,
    pub create: bool,
    /// Desired mode and owner of the file.
    pub attributes: Result<Attributes, String>,
}

pub(super) fn line(context: &StateContext, name: &str, desired: &Desired) -> StateReturn {
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let path = Path::new(name);
    if desired.create
        && !context.test
        && !path.exists()
        && let Err(error) = user_files::create(path)
    {
        return StateReturn::failed(name, format!("Failed to create {name}: {error}"));
    }
    // Changes of the mode or owner are not reported.
    if !context.test
        && path.is_file()
        && let Err(error) = desired.attributes.clone().and_then(|attributes| attributes.apply(path))
    {
        tracing::error!(name, error, "setting the mode or owner of a file failed");
    }
    if !path.is_file() {
        return StateReturn::failed(name, format!("{name}: file not found"));
    }
    let Some(mode) = desired.mode.as_deref() else {
        return StateReturn::failed(name, "Mode was not defined. How to process the file?");
    };
    if mode != "delete" && desired.line.content.is_none() {
        return StateReturn::failed(name, "Content can only be empty if mode is ['delete']");
    }
    let text = match user_files::read(path)
        .map_err(|error| error.to_string())
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned()))
    {
        Ok(text) => text,
        Err(error) => return StateReturn::failed(name, format!("Unable to read {name}: {error}")),
    };
    let changed = match edited(&text, mode, &desired.line) {
        Ok(changed) => changed,
        // With `quiet`, only the comment changes: the state still fails.
        Err(_) if desired.quiet => return StateReturn::failed(name, "No changes needed to be made"),
        Err(error) => return StateReturn::failed(name, error),
    };
    if changed == text {
        return StateReturn::ok(name, "No changes needed to be made");
    }
    let diff = if desired.show_changes { unified(&text, &changed).into() } else { brine_value::Value::from(true) };
    let changes = map! {"diff" => diff};
    if context.test {
        return StateReturn::predicted(name, "Changes would be made").with_changes(changes);
    }
    if desired.backup
        && let Err(error) = user_files::real(path).map_err(CallError::execution).and_then(|file| keep_dated(&file))
    {
        return StateReturn::failed(name, error.message());
    }
    match rewrite_without_setuid(path, changed.as_bytes()).map_err(|error| format!("Unable to write {name}: {error}")) {
        Ok(()) => StateReturn::ok(name, "Changes were made").with_changes(changes),
        Err(error) => StateReturn::failed(name, error),
    }
}
