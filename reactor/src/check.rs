//! Checks the files of entries and rules without a reactor, for `--check` and the start of a daemon.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_value::Map;

use crate::entries::Entries;
use crate::plan::Planner;
use brine_rules::Rules;

/// Template text that needs a running master.
const NEEDS_MASTER: &[&str] = &["salt[", "salt.", "grains", "pillar", "import"];

/// Checks the files of entries and returns the errors; `salt://` files are not checked.
pub fn check_files(entries: &Entries, renderer: &str, strict: bool) -> Vec<String> {
    let planner = Planner::for_check(renderer, strict, &Arc::default());
    let mut errors = Vec::new();
    for entry in entries.all() {
        for file in &entry.files {
            if planner.is_missing(file) {
                errors.push(format!(
                    "the reactor entry '{}' names a file that does not exist: {file}; its events fail until the file is there",
                    entry.pattern
                ));
                continue;
            }
            let invalid = planner.check(file);
            errors.extend(
                invalid
                    .into_iter()
                    .map(|error| format!("the reactor entry '{}' names an invalid file: {error}", entry.pattern)),
            );
        }
    }
    errors
}

/// Checks rules over time and returns the errors. Files whose templates need a running master are not checked.
pub fn check_rules(files: &[String], renderer: &str, strict: bool, opts: &Map) -> Vec<String> {
    let planner = Planner::for_check(renderer, strict, &Arc::new(opts.clone()));
    let (mut errors, mut located) = (Vec::new(), Vec::new());
    for file in files.iter().filter(|file| !file.starts_with("salt://")) {
        let paths = brine_text::glob::paths(Path::new(""), file);
        let needs_master = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            NEEDS_MASTER.iter().any(|word| text.contains(word))
        };
        if paths.iter().any(needs_master) {
            continue;
        }
        match planner.rules(file) {
            Ok(rendered) => located.extend(rendered.into_iter().map(|(path, rules)| (PathBuf::from(path), rules))),
            Err(error) => errors.push(error),
        }
    }
    let (_, invalid) = Rules::parse(&located);
    errors.extend(invalid.iter().map(ToString::to_string));
    errors
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn invalid_files_of_entries_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        for (name, text) in [
            ("good.sls", "{% if data.x %}\na:\n  local.test.ping:\n    - tgt: {{ data.id }}\n{% endif %}\n"),
            ("open.sls", "{% if data.x %}\n"),
            ("yaml.sls", "a: [1\n"),
            ("target.sls", "a:\n  local.test.ping: []\n"),
        ] {
            std::fs::write(at(name), text).unwrap();
        }
        for (name, expected) in [
            ("good.sls", None),
            ("*d.sls", None),
            ("none.sls", Some("names a file that does not exist: ")),
            ("none*.sls", Some("names a file that does not exist: ")),
            ("open.sls", Some("names an invalid file: ")),
            ("yaml.sls", Some("yaml.sls:2: ")),
            ("target.sls", Some("target.sls:2: 'local.test.ping' needs a target")),
        ] {
            let entries = Entries::from_config(&map! {"tag" => at(name)}.into()).unwrap();
            let errors = check_files(&entries, "jinja|yaml", true);
            match expected {
                None => assert_eq!(errors, Vec::<String>::new(), "{name}"),
                Some(part) => assert!(errors.len() == 1 && errors[0].contains(part), "{name}: {errors:?}"),
            }
        }
        let served = Entries::from_config(&map! {"tag" => "salt://x.sls"}.into()).unwrap();
        assert_eq!(check_files(&served, "jinja|yaml", true), Vec::<String>::new());
    }
}
