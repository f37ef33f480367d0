//! The state of an archive's target directory, and the removals before extraction.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use brine_system::user_files;
use brine_value::Value;

use super::{Early, Extracted, StateContext, StateReturn};
use crate::archive::Contents;

type TypeCheck = fn(&fs::Metadata) -> bool;

/// The comparison of the target directory with an archive: whether the extraction is needed, whether paths are missing,
/// and the paths of another type.
#[derive(Default)]
pub(super) struct Inspection {
    pub needed: bool,
    pub missing: bool,
    pub wrong_kind: Vec<String>,
}

impl Extracted {
    /// Compares the target directory with the content of the archive.
    pub(super) fn inspect(&self, directory: &str, contents: &Contents) -> Result<Inspection, String> {
        let mut inspection = Inspection { needed: self.overwrite, ..Inspection::default() };
        let kinds: [(&[String], TypeCheck); 3] = [
            (&contents.dirs, |have| have.is_dir()),
            (&contents.files, |have| !have.is_symlink() && !have.is_dir()),
            (&contents.links, fs::Metadata::is_symlink),
        ];
        for (paths, has_type) in kinds {
            for path in paths {
                match fs::symlink_metadata(member_path(directory, path)) {
                    Ok(have) if has_type(&have) => {}
                    Ok(_) => inspection.wrong_kind.push(path.clone()),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                        (inspection.needed, inspection.missing) = (true, true);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        Ok(inspection)
    }

    /// Removes the paths of another type than in the archive, if `force` is set.
    pub(super) fn remove_obstacle(
        &self,
        context: &StateContext,
        name: &str,
        directory: &str,
        inspection: &mut Inspection,
        outcome: &mut StateReturn,
    ) -> Result<(), Early> {
        let list: Vec<String> = inspection.wrong_kind.iter().map(|path| format!("- {path}")).collect();
        let list = format!("\n\n{}", list.join("\n"));
        let message = format!(
            "The below paths (relative to {directory}) exist, but are the incorrect type (file instead of directory, \
             symlink instead of file, etc.)."
        );
        outcome.comment.clone_from(&message);
        if context.test && self.clean {
            return Err(Box::new(StateReturn::predicted(
                name,
                format!(
                    "{message} Since the 'clean' option is enabled, the destination paths would be cleared and the archive \
                     would be extracted.{list}"
                ),
            )));
        }
        if context.test && self.clean_parent {
            return Err(Box::new(StateReturn::predicted(
                name,
                format!(
                    "{message} Since the 'clean_parent' option is enabled, the destination parent directory would be \
                     removed first and then re-created and the archive would be extracted"
                ),
            )));
        }
        if self.clean {
            return Ok(());
        }
        if !self.force {
            return Err(Box::new(StateReturn::failed(
                name,
                format!(
                    "{message} To proceed with extraction, set 'force' to True. Note that this will remove these paths \
                     before extracting.{list}"
                ),
            )));
        }
        let paths =
            inspection.wrong_kind.iter().map(|path| (member_path(directory, path), format!("{directory}{path}")));
        let errors = remove_all(paths, outcome);
        inspection.needed = true;
        if errors.is_empty() {
            return Ok(());
        }
        let comment = format!(
            "One or more paths existed by were the incorrect type (i.e. file instead of directory or vice-versa), but \
             could not be removed. The following errors were observed:\n{errors}"
        );
        Err(Box::new(StateReturn::failed(name, comment).with_changes(outcome.changes.clone())))
    }

    /// Applies `clean` and `clean_parent`.
    pub(super) fn make_room(
        &self,
        directory: &str,
        contents: &Contents,
        outcome: &mut StateReturn,
    ) -> Result<(), Early> {
        let name = outcome.name.clone();
        if self.clean_parent {
            match user_files::remove_dir_all(directory) {
                Ok(()) => {
                    let message = format!("Directory {directory} was removed prior to the extraction");
                    outcome.changes.entry("removed".into()).or_insert_with(|| message.into());
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Box::new(StateReturn::failed(
                        &name,
                        format!(
                            "Unable to remove the directory {directory}. The following errors were observed:\n\n- {error}"
                        ),
                    )));
                }
            }
        }
        if self.clean {
            let top = [contents.top_level_dirs(), contents.top_level_files()].concat();
            let errors = remove_all(
                top.iter().map(|path| (member_path(directory, path), format!("{directory}{path}"))),
                outcome,
            );
            if !errors.is_empty() {
                let comment =
                    format!("One or more paths could not be cleaned. The following errors were observed:\n{errors}");
                return Err(Box::new(StateReturn::failed(&name, comment).with_changes(outcome.changes.clone())));
            }
        }
        Ok(())
    }
}

/// Returns the path of an archive member below the directory; `..` is not followed.
pub(super) fn member_path(directory: &str, path: &str) -> PathBuf {
    let steps = path.split('/').filter(|step| !matches!(*step, "" | "." | ".."));
    Path::new(directory).join(steps.collect::<PathBuf>())
}

/// Removes paths and records them in the changes. Returns the errors, one per line.
fn remove_all(paths: impl Iterator<Item = (PathBuf, String)>, outcome: &mut StateReturn) -> String {
    let (mut errors, mut removed) = (String::new(), BTreeSet::new());
    let mut report: Vec<Value> = Vec::new();
    for (path, name) in paths {
        match user_files::remove_dir_all(&path) {
            Ok(()) if removed.insert(name.clone()) => report.push(name.into()),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => errors += &format!("\n- {error}"),
            _ => {}
        }
    }
    if !report.is_empty() {
        match outcome.changes.entry("removed".into()).or_insert_with(|| Value::List(Vec::new())) {
            Value::List(list) => list.extend(report),
            other => *other = report.into(),
        }
    }
    errors
}
