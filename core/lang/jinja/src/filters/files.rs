//! Filters for files of the local host.

use std::collections::HashSet;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_digest::hex;
use brine_system::processes;
use brine_text::binary::is_binary;
use brine_value::Value;
use minijinja::value::{Rest, Value as JinjaValue};
use minijinja::{Environment, Error};

use super::super::data::{raise, to_jinja, type_name};
use super::{Defined, by_name, defined, text_of};

/// The size of the start of a file that decides whether it is text.
const TEXT_START: u64 = 512;
const BINARY_START: u64 = 2048;

/// The maximum number of listed files.
const MAX_FILES: usize = 1 << 20;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter("is_text_file", |path: JinjaValue| -> Result<bool, Error> {
        Ok(start_of(&path_of(&path)?, TEXT_START).is_some_and(|start| !is_binary(&start)))
    });
    environment.add_filter("is_bin_file", |path: JinjaValue| -> Result<bool, Error> {
        Ok(start_of(&path_of(&path)?, BINARY_START).is_some_and(|start| is_binary(&start)))
    });
    environment.add_filter("list_files", |directory: JinjaValue| -> Result<JinjaValue, Error> {
        let directory = path_of(&directory)?;
        let mut paths = vec![directory.clone()];
        list(&directory, &mut HashSet::new(), &mut paths);
        Ok(to_jinja(&paths.iter().map(|path| Value::from(path.to_string_lossy().as_ref())).collect()))
    });
    environment.add_filter("path_join", |first: JinjaValue, rest: Rest<JinjaValue>| -> Result<String, Error> {
        let mut path = normal_path(&text_of(&first)?);
        for part in rest.iter() {
            // Unlike in Python, an absolute part does not replace the parts before it.
            let part = normal_path(&text_of(part)?);
            let separator = if path.ends_with('/') { "" } else { "/" };
            path = format!("{path}{separator}{}", part.trim_start_matches('/'));
        }
        Ok(normal_path(&path))
    });
    by_name(
        environment,
        "file_hashsum",
        &["form", "chunk_size"],
        |path: String, form: Option<String>, _chunk_size: Option<u64>| {
            let digest = super::text::digest(form.as_deref().unwrap_or("sha256"))?.of_file(Path::new(&path));
            Ok::<_, Error>(hex(digest.map_err(|error| raise(format_args!("{path}: {error}")))?))
        },
    );
    environment.add_filter("is_empty", |path: JinjaValue| -> Result<bool, Error> {
        Ok(path_of(&path)?.metadata().is_ok_and(|status| status.len() == 0))
    });
    environment.add_filter("which", |name: JinjaValue| -> Result<Option<String>, Error> {
        if !name.is_true() && !name.is_undefined() {
            Ok(None)
        } else {
            path_of(&name).map(|name| processes::find(&name).map(|path| path.to_string_lossy().into_owned()))
        }
    });
    environment.add_filter("get_uid", |name: Defined| {
        let message = "getpwnam() argument must be str, not";
        let name = name.as_str().ok_or_else(|| raise(format_args!("{message} {}", type_name(&name))))?;
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let of = |line: &str| {
            let mut fields = line.split(':');
            (fields.next() == Some(name)).then(|| fields.nth(1)?.parse::<u32>().ok()).flatten()
        };
        Ok::<_, Error>(accounts.lines().find_map(of))
    });
}

/// Returns a path without empty parts, `.` and `..`, as Python's `normpath`.
fn normal_path(path: &str) -> String {
    let root = if path.starts_with("//") && !path.starts_with("///") { 2 } else { usize::from(path.starts_with('/')) };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part != ".." || (root == 0 && parts.last().is_none_or(|last| *last == "..")) {
            parts.push(part);
        } else {
            parts.pop();
        }
    }
    let path = format!("{}{}", "/".repeat(root), parts.join("/"));
    if path.is_empty() { ".".to_owned() } else { path }
}

/// Returns a path, which must be a string.
fn path_of(value: &JinjaValue) -> Result<PathBuf, Error> {
    if let Value::Str(path) = defined(value)? {
        return Ok(PathBuf::from(path.as_str()));
    }
    let expected = "access: path should be string, bytes or os.PathLike, not";
    Err(raise(format_args!("{expected} {}", type_name(value))))
}

/// Returns the first bytes of a file; `None` if it cannot be read.
fn start_of(path: &Path, length: u64) -> Option<Vec<u8>> {
    // Reading a pipe would block.
    if !path.is_file() {
        return None;
    }
    let mut start = Vec::new();
    std::fs::File::open(path).ok()?.take(length).read_to_end(&mut start).ok()?;
    Some(start)
}

/// Lists a directory recursively, sorted. A directory is listed once, even if symbolic links form a cycle.
fn list(directory: &Path, entered: &mut HashSet<(u64, u64)>, listing: &mut Vec<PathBuf>) {
    let Ok(status) = directory.metadata() else { return };
    if !entered.insert((status.dev(), status.ino())) {
        return;
    }
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if listing.len() >= MAX_FILES {
            return;
        }
        let is_directory = path.is_dir();
        listing.push(path.clone());
        if is_directory {
            list(&path, entered, listing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_listed_once() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir(root.join("b")).unwrap();
        std::fs::write(root.join("b/c"), "").unwrap();
        std::fs::write(root.join("a"), "").unwrap();
        std::os::unix::fs::symlink(root, root.join("b/up")).unwrap();
        let mut paths = Vec::new();
        list(root, &mut HashSet::new(), &mut paths);
        let expected: Vec<PathBuf> = ["a", "b", "b/c", "b/up"].iter().map(|name| root.join(name)).collect();
        assert_eq!(paths, expected);
    }
}
