//! The `.repo` files of dnf and zypper: one section per repository, parsed as Salt does.

use std::path::{Path, PathBuf};

use brine_system::files::{self, FileError};
use brine_value::{Map, Value};
use indexmap::IndexMap;

use crate::pkg::options::is_true;

/// A repository in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    /// Options in order. A value may have several lines.
    pub options: IndexMap<String, String>,
    /// Comments below its name, without their `#`.
    pub comments: Vec<String>,
}

/// A file of repositories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepoFile {
    /// Comments above all repositories.
    pub header: Vec<String>,
    /// Repositories by name.
    pub sections: IndexMap<String, Section>,
}

impl Section {
    /// Returns the repository in Salt's form.
    pub fn to_map(&self) -> Map {
        let mut report: Map = self.options.iter().map(|(key, value)| (key.into(), value.into())).collect();
        if !self.comments.is_empty() {
            report.insert("comments".into(), self.comments.clone().into());
        }
        report
    }

    fn set(&mut self, key: &str, value: &str) {
        self.options.insert(key.trim().to_lowercase(), value.trim().to_owned());
    }
}

impl RepoFile {
    fn parse(text: &str) -> Self {
        let mut file = RepoFile::default();
        // Indentation of the option whose value may continue.
        let mut option: Option<usize> = None;
        for line in text.lines() {
            let bare = line.trim();
            if bare.starts_with('#') {
                let comment = bare.trim_start_matches('#').trim_start().to_owned();
                match file.sections.last_mut() {
                    Some((_, section)) => section.comments.push(comment),
                    None => file.header.push(bare.to_owned()),
                }
                continue;
            }
            if bare.is_empty() || bare.starts_with(';') {
                continue;
            }
            let indent = line.len() - line.trim_start().len();
            if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                file.sections.entry(name.to_owned()).or_default();
                option = None;
                continue;
            }
            let Some((_, section)) = file.sections.last_mut() else { continue };
            if option.is_some_and(|start| indent > start)
                && let Some((_, value)) = section.options.last_mut()
            {
                *value = format!("{value}\n{bare}");
                continue;
            }
            if let Some((key, value)) = bare.split_once(['=', ':']) {
                section.set(key, value);
                option = Some(indent);
            }
        }
        file
    }

    /// Reads a file; a missing one is empty.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Ok(RepoFile::parse(&files::read_if_exists(path)?.unwrap_or_default()))
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        // It may contain a password, so its mode is kept.
        files::rewrite(path, self.show().as_bytes(), 0o644)
    }

    fn show(&self) -> String {
        let mut lines = self.header.clone();
        for (name, section) in &self.sections {
            lines.push(format!("[{name}]"));
            // Continuation lines of a value are indented.
            lines.extend(section.options.iter().map(|(key, value)| format!("{key}={}", value.replace('\n', "\n "))));
            lines.extend(section.comments.iter().map(|comment| format!("# {comment}")));
            lines.push(String::new());
        }
        lines.join("\n") + "\n"
    }
}

/// Returns the comments of a state or call as they are stored.
pub fn comments(value: &Value) -> Vec<String> {
    let one = [value.clone()];
    let texts = value.as_list().unwrap_or(&one).iter().map(ToString::to_string);
    texts.map(|text| text.trim_start_matches('#').trim_start().to_owned()).collect()
}

/// Formats a value.
pub fn written(value: &Value) -> String {
    match value {
        Value::Bool(yes) => if *yes { "1" } else { "0" }.to_owned(),
        Value::List(items) => items.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

/// Returns the repositories in the files of several directories, with the file of each.
pub fn repositories(directories: &[PathBuf]) -> Result<IndexMap<String, (PathBuf, Section)>, FileError> {
    let mut repositories = IndexMap::new();
    for directory in directories {
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "repo"));
        paths.sort();
        for path in paths {
            let sections = RepoFile::read(&path)?.sections;
            repositories.extend(sections.into_iter().map(|(name, section)| (name, (path.clone(), section))));
        }
    }
    Ok(repositories)
}

/// Converts `humanname` and `disabled` to the options of `.repo` files.
pub fn describe(name: &str, args: &mut Map) {
    let disabled = args.shift_remove("disabled");
    let humanname = args.shift_remove("humanname");
    // PPAs are for Ubuntu only.
    args.shift_remove("ppa");
    args.entry("name".into()).or_insert_with(|| name.into());
    if let Some(humanname) = humanname {
        args.insert("name".into(), humanname);
    }
    args.insert("enabled".into(), (!disabled.is_some_and(|disabled| is_true(&disabled))).into());
}

/// Whether an option differs from the desired value.
pub fn differs(key: &Value, desired: &Value, have: Option<&Value>) -> bool {
    let Some(have) = have else { return key.as_str().is_some_and(|key| ["comps", "key_url"].contains(&key)) };
    if matches!(desired, Value::Bool(_)) || matches!(have, Value::Bool(_)) {
        return is_true(desired) != is_true(have);
    }
    written(desired) != have.to_string()
}

#[cfg(test)]
mod tests;
