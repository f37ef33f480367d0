//! The test files below paths, and the root of the tree of each.

use std::path::{Path, PathBuf};

/// The ending of test files.
const ENDING: &str = ".test.yml";
/// The ending of the tests of Salt's module `saltcheck`.
const SALTCHECK: &str = "tst";
/// The maximum depth of directories.
const MAX_DEPTH: usize = 64;

/// A file with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The absolute path.
    pub path: PathBuf,
    /// The path in messages: below the working directory, if it is there.
    pub shown: PathBuf,
    /// The root of its state tree.
    pub root: PathBuf,
    /// Whether it has the format of `saltcheck`.
    pub is_saltcheck: bool,
}

/// Finds the test files at or below paths, each once, sorted. Without `root`, the root of a file is the nearest directory
/// above it with a `top.sls`, or the path that it was found below, or the directory that has `tests`.
///
/// # Errors
/// Paths that do not exist, or are neither directories nor test files.
pub fn find(paths: &[PathBuf], root: Option<&Path>) -> Result<Vec<Found>, Vec<String>> {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        let absolute = match std::fs::canonicalize(path) {
            Ok(absolute) => absolute,
            Err(error) => {
                errors.push(format!("reading {} failed: {error}", path.display()));
                continue;
            }
        };
        if absolute.is_dir() {
            for file in files_below(&absolute) {
                let Some(is_saltcheck) = kind(&file) else { continue };
                let below = file.strip_prefix(&absolute).unwrap_or(&file);
                let display_path = if path == Path::new(".") { below.to_owned() } else { path.join(below) };
                let root = root.map_or_else(|| root_of(&file, &absolute), Path::to_owned);
                files.push(Found { shown: display_path, path: file, root, is_saltcheck });
            }
        } else if let Some(is_saltcheck) = kind(&absolute) {
            let above = absolute.parent().map(Path::to_owned).unwrap_or_default();
            // Tests in a directory of their own belong to the tree around it.
            let above = above.ancestors().find(|path| path.ends_with("tests")).and_then(Path::parent).unwrap_or(&above);
            let root = root.map_or_else(|| root_of(&absolute, above), Path::to_owned);
            files.push(Found { shown: path.clone(), path: absolute.clone(), root, is_saltcheck });
        } else {
            errors.push(format!(
                "{} is invalid: expected a directory or a file *{ENDING} or *.{SALTCHECK}",
                path.display()
            ));
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files.dedup_by(|one, other| one.path == other.path);
    if errors.is_empty() { Ok(files) } else { Err(errors) }
}

/// Returns whether a test file is one of `saltcheck`; `None` for other files.
fn kind(path: &Path) -> Option<bool> {
    let name = path.file_name()?.to_str()?;
    if name.ends_with(ENDING) {
        return Some(false);
    }
    (path.extension()?.to_str()? == SALTCHECK).then_some(true)
}

/// Returns the files below a directory, in any order, without what is hidden or a link to a directory.
pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    add_files(directory, 0, &mut files);
    files
}

fn add_files(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => add_files(&entry.path(), depth + 1, files),
            Ok(kind) if !kind.is_dir() => files.push(entry.path()),
            _ => {}
        }
    }
}

fn root_of(path: &Path, otherwise: &Path) -> PathBuf {
    let above = path.ancestors().skip(1).find(|directory| directory.join("top.sls").is_file());
    above.unwrap_or(otherwise).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_directory_with_the_top_file_or_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().canonicalize().unwrap();
        for path in [
            "a/salt/top.sls",
            "a/salt/web/init.test.yml",
            "b/web.test.yml",
            "b/tests/db.test.yml",
            "b/old/x.tst",
            "b/.git/y.test.yml",
            "b/z.yml",
        ] {
            let path = tree.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let files = find(std::slice::from_ref(&tree), None).unwrap();
        let actual: Vec<(String, String, bool)> = files
            .iter()
            .map(|one| {
                let below = |path: &Path| path.strip_prefix(&tree).unwrap().display().to_string();
                (below(&one.path), below(&one.root), one.is_saltcheck)
            })
            .collect();
        let expected = [
            ("a/salt/web/init.test.yml", "a/salt", false),
            ("b/old/x.tst", "", true),
            ("b/tests/db.test.yml", "", false),
            ("b/web.test.yml", "", false),
        ];
        assert_eq!(actual, expected.map(|(path, root, is)| (path.to_owned(), root.to_owned(), is)));
        let one = find(&[tree.join("b/tests/db.test.yml")], None).unwrap();
        assert_eq!(one[0].root, tree.join("b"));
        assert!(find(&[tree.join("b/z.yml"), tree.join("none")], None).is_err_and(|errors| errors.len() == 2));
    }
}
