//! `file`: files and folders as states.
//!
//! `managed.rs` owns contents, `attributes.rs` modes and owners.

mod attributes;
mod managed;

use std::path::Path;

use brine_core::{Value, functions, map};

use super::{StateContext, StateReturn};
use attributes::Attributes;

functions! {
    module "file", context StateContext;

    /// A file with this content: from a source under `salt://`, from `contents`, from pillar or grains.
    fn managed(
        context,
        name: String,
        source: Value = Value::Nil,
        contents: Value = Value::Nil,
        contents_pillar: Value = Value::Nil,
        contents_grains: Value = Value::Nil,
        contents_newline: bool = true,
        template: Option<String> = None,
        defaults: Value = Value::Nil,
        mode: Value = Value::Nil,
        user: Value = Value::Nil,
        group: Value = Value::Nil,
        makedirs: bool = false,
        dir_mode: Value = Value::Nil,
        replace: bool = true,
        create: bool = true,
        show_changes: bool = true,
        **_kwargs
    ) {
        let contents = managed::Contents { source, contents, contents_pillar, contents_grains, newline: contents_newline, template, defaults };
        let attributes = Attributes::new(&mode, &user, &group);
        let how = managed::How { makedirs, dir_mode, replace, create, show_changes };
        Ok(managed::managed(context, &name, &contents, attributes, &how).into())
    }

    /// A folder, and its mode and owner.
    fn directory(
        context,
        name: String,
        mode: Value = Value::Nil,
        dir_mode: Value = Value::Nil,
        user: Value = Value::Nil,
        group: Value = Value::Nil,
        makedirs: bool = false,
        force: bool = false,
        **_kwargs
    ) {
        let mode = if dir_mode.is_nil() { mode } else { dir_mode };
        let attributes = Attributes::new(&mode, &user, &group);
        Ok(directory_state(context, &name, attributes, makedirs, force).into())
    }

    /// Nothing at this path.
    fn absent(context, name: String, **_kwargs) {
        Ok(absent_state(context, &name).into())
    }

    /// Something at this path: says whether there is.
    fn exists(_context, name: String, **_kwargs) {
        let there = Path::new(&name).exists();
        Ok(if there { StateReturn::ok(&name, format!("Path {name} exists")) } else { StateReturn::failed(&name, format!("Specified path {name} does not exist")) }.into())
    }

    /// Nothing at this path: says whether there is.
    fn missing(_context, name: String, **_kwargs) {
        let there = Path::new(&name).exists();
        Ok(if there { StateReturn::failed(&name, format!("Specified path {name} exists")) } else { StateReturn::ok(&name, format!("Path {name} is missing")) }.into())
    }
}

/// Why a path cannot be one.
fn bad_path(name: &str) -> Option<StateReturn> {
    if name.is_empty() {
        return Some(StateReturn::failed(name, "Must provide name to file.managed"));
    }
    (!Path::new(name).is_absolute())
        .then(|| StateReturn::failed(name, format!("Specified file {name} is not an absolute path")))
}

fn directory_state(
    context: &StateContext,
    name: &str,
    attributes: Result<Attributes, String>,
    makedirs: bool,
    force: bool,
) -> StateReturn {
    if let Some(bad) = bad_path(name) {
        return bad;
    }
    let attributes = match attributes {
        Ok(attributes) => attributes,
        Err(error) => return StateReturn::failed(name, error),
    };
    let path = Path::new(name);
    let status = std::fs::symlink_metadata(path).ok();
    let is_folder = path.is_dir();
    if status.is_some() && !is_folder && !force {
        return StateReturn::failed(name, format!("Specified location {name} exists and is a file"));
    }
    if !is_folder && !makedirs && !path.parent().is_some_and(Path::is_dir) {
        return StateReturn::failed(name, format!("No directory to create {name} in"));
    }
    if context.test {
        let mut changes = brine_core::Map::new();
        if is_folder {
            changes = attributes.differences(path);
        } else {
            changes.insert("directory".into(), "new".into());
        }
        if changes.is_empty() {
            return StateReturn::ok(name, format!("The directory {name} is in the correct state"));
        }
        let told: Vec<String> = changes.iter().map(|(key, value)| format!("{name}: {key} - {value}\n")).collect();
        let comment = format!("The following files will be changed:\n{}", told.concat());
        return StateReturn::would(name, comment).with_changes(map! {name => changes});
    }
    let mut changes = brine_core::Map::new();
    if !is_folder {
        let made = (|| {
            if status.is_some() {
                std::fs::remove_file(path)?;
            }
            if makedirs { std::fs::create_dir_all(path) } else { std::fs::create_dir(path) }
        })();
        if let Err(error) = made {
            return StateReturn::failed(name, format!("Failed to create directory {name}: {error}"));
        }
        changes.insert(name.into(), map! {"directory" => "new"}.into());
    }
    match attributes.apply(path) {
        Ok(applied) if changes.is_empty() && applied.is_empty() => {
            StateReturn::ok(name, format!("The directory {name} is in the correct state"))
        }
        Ok(applied) => {
            let comment = if is_folder { format!("Directory {name} updated") } else { String::new() };
            changes.extend(applied);
            StateReturn::ok(name, comment).with_changes(changes)
        }
        Err(error) => StateReturn::failed(name, error).with_changes(changes),
    }
}

fn absent_state(context: &StateContext, name: &str) -> StateReturn {
    if let Some(bad) = bad_path(name) {
        return bad;
    }
    if name == "/" {
        return StateReturn::failed(name, "Refusing to make \"/\" absent");
    }
    let path = Path::new(name);
    let Ok(status) = std::fs::symlink_metadata(path) else {
        return StateReturn::ok(name, format!("File {name} is not present"));
    };
    let (kind, is_folder) = if status.is_dir() { ("Directory", true) } else { ("File", false) };
    if context.test {
        return StateReturn::would(name, format!("{kind} {name} is set for removal"))
            .with_changes(map! {"removed" => name});
    }
    let removed = if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Ok(()) => StateReturn::ok(name, format!("Removed {} {name}", kind.to_lowercase()))
            .with_changes(map! {"removed" => name}),
        Err(error) => StateReturn::failed(name, format!("Failed to remove {name}: {error}")),
    }
}

#[cfg(test)]
mod tests;
