//! Files below `file_roots` and `pillar_roots`, for the wheel modules of the same names.
//!
//! Paths come from callers and cannot leave their root: absolute paths, `..` and links that lead outside are rejected,
//! for reads as well (CVE-2020-11652, CVE-2021-25282).

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use brine_config::Roots;
use brine_function::{CallError, CallResult};
use brine_system::files::{self, path_within, relative_path};
use brine_value::{Map, Value, map};

/// The maximum size of a file that is returned or written, in bytes.
const MAX_FILE: u64 = 16 << 20;
/// The maximum number of files and directories in a list.
const MAX_ENTRIES: usize = 200_000;
/// The size of the sample by which a file is classified as text or binary, in bytes, as in Salt.
const SAMPLE: u64 = 512;

/// Defines the wheel functions of a module, for the roots that a method of the host returns. `$shows_path` is whether
/// errors of `write` show the invalid path, and `secret` declares that the content of files is.
macro_rules! functions {
    ($module:literal, $roots:ident, $shows_path:literal $(, $secret:ident)?) => {
        /// Wheel functions of this module.
        pub static FUNCTIONS: ::brine_function::Functions<crate::wheel::WheelContext> =
            ::brine_function::registry!($module, [find, list_env, list_roots, read, write]);

        /// Return the files of a path in all roots of an environment, each as text (`txt`) or binary (`bin`).
        #[::brine_function::function]
        pub fn find(
            context: &crate::wheel::WheelContext,
            /// Path below a root.
            path: String,
            /// Environment.
            #[default("base".into())]
            saltenv: String,
        ) -> ::brine_function::CallResult {
            crate::wheel::roots::find(&context.host.$roots(), &path, &saltenv)
        }

        /// Return all files and directories of an environment, by root. Links are not followed.
        #[::brine_function::function]
        pub fn list_env(
            context: &crate::wheel::WheelContext,
            /// Environment.
            #[default("base".into())]
            saltenv: String,
        ) -> ::brine_function::CallResult {
            crate::wheel::roots::list_env(&context.host.$roots(), &saltenv)
        }

        /// Return all files and directories of all environments.
        #[::brine_function::function]
        pub fn list_roots(context: &crate::wheel::WheelContext) -> ::brine_function::CallResult {
            crate::wheel::roots::list_roots(&context.host.$roots())
        }

        /// Return the content of the text files of a path in all roots of an environment.
        #[::brine_function::function($($secret)?)]
        pub fn read(
            context: &crate::wheel::WheelContext,
            /// Path below a root.
            path: String,
            /// Environment.
            #[default("base".into())]
            saltenv: String,
        ) -> ::brine_function::CallResult {
            crate::wheel::roots::read(&context.host.$roots(), &path, &saltenv)
        }

        /// Write a file into a root of an environment, and create its directories.
        #[::brine_function::function]
        pub fn write(
            context: &crate::wheel::WheelContext,
            /// Content of the file.
            data: String,
            /// Path below a root.
            path: String,
            /// Environment.
            #[default("base".into())]
            saltenv: String,
            /// Position of the root in the list of the environment.
            #[default(0)]
            index: usize,
        ) -> ::brine_function::CallResult {
            crate::wheel::roots::write(&context.host.$roots(), &data, (&path, &saltenv, index), $shows_path)
        }
    };
}
pub(super) use functions;

/// Returns the files with this path in the roots of an environment, each as `{path: txt}` or `{path: bin}`.
pub(super) fn find(roots: &Roots, path: &str, saltenv: &str) -> CallResult {
    let mut files = Vec::new();
    for (full, inside) in existing(roots, path, saltenv) {
        let kind = if is_text(&inside)? { "txt" } else { "bin" };
        files.push(Value::from(map! {full => kind}));
    }
    Ok(files.into())
}

/// Returns the content of the text files with this path in the roots of an environment, each as `{path: content}`.
pub(super) fn read(roots: &Roots, path: &str, saltenv: &str) -> CallResult {
    let mut files = Vec::new();
    for (full, inside) in existing(roots, path, saltenv) {
        if !is_text(&inside)? {
            continue;
        }
        let failed = |error| CallError::execution(format!("reading {full} failed: {error}"));
        let mut content = Vec::new();
        let file = File::open(&inside).map_err(failed)?;
        file.take(MAX_FILE + 1).read_to_end(&mut content).map_err(failed)?;
        if content.len() as u64 > MAX_FILE {
            return Err(CallError::execution(format!("reading {full} failed: expected at most {MAX_FILE} bytes")));
        }
        files.push(Value::from(map! {full => String::from_utf8_lossy(&content).into_owned()}));
    }
    Ok(files.into())
}

/// Returns the files and directories of the roots of an environment: `{root: {directory: {file: f}}}`.
pub(super) fn list_env(roots: &Roots, saltenv: &str) -> CallResult {
    let mut left = MAX_ENTRIES;
    let mut listing = Map::new();
    for root in roots.get(saltenv).into_iter().flatten() {
        let mut above = HashSet::new();
        listing.insert(Value::from(root.display().to_string()), listed(root, &mut left, &mut above)?.into());
    }
    Ok(listing.into())
}

/// Returns the file lists of all environments; each value is a list with one tree.
pub(super) fn list_roots(roots: &Roots) -> CallResult {
    let mut listing = Map::new();
    for saltenv in roots.keys() {
        listing.insert(saltenv.as_str().into(), vec![list_env(roots, saltenv)?].into());
    }
    Ok(listing.into())
}

/// Writes a file into a root of an environment. As in Salt, mistakes are returned as sentences; with `shows_path`, as
/// for Salt's `file_roots`, they include the invalid path.
pub(super) fn write(
    roots: &Roots,
    data: &str,
    (path, saltenv, index): (&str, &str, usize),
    shows_path: bool,
) -> CallResult {
    let Some(directories) = roots.get(saltenv) else {
        return Ok(format!("Named environment {saltenv} is not present").into());
    };
    let Some(root) = directories.get(index) else {
        return Ok(format!("Specified index {index} in environment {saltenv} is not present").into());
    };
    if Path::new(path).is_absolute() {
        return Ok(format!("The path passed in {path} is not relative to the environment {saltenv}").into());
    }
    if data.len() as u64 > MAX_FILE {
        return Err(CallError::execution(format!("writing {path} failed: expected at most {MAX_FILE} bytes")));
    }
    let Some(relative) = relative_path(path) else { return Ok(invalid(path, shows_path)) };
    let failed = |error| CallError::execution(format!("writing {path} failed: {error}"));
    fs::create_dir_all(root).map_err(failed)?;
    let Some(inside) = path_within(root, path) else {
        tracing::warn!(path, root = %root.display(), "a wheel function was refused a file outside of its root");
        return Ok(invalid(path, shows_path));
    };
    if let Some(directory) = inside.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    files::rewrite(&inside, data.as_bytes(), 0o644).map_err(CallError::execution)?;
    Ok(format!("Wrote data to file {}", root.join(relative).display()).into())
}

fn invalid(path: &str, shows_path: bool) -> Value {
    if shows_path { format!("Invalid path: {path}").into() } else { "Invalid path".into() }
}

/// Returns the regular files with this path in the roots of an environment: the path as Salt shows it, and the path
/// with links resolved, which is within the root.
fn existing(roots: &Roots, path: &str, saltenv: &str) -> Vec<(String, std::path::PathBuf)> {
    let Some(relative) = relative_path(path) else { return Vec::new() };
    let inside = |root: &std::path::PathBuf| {
        let inside = path_within(root, path).filter(|inside| inside.is_file())?;
        Some((root.join(&relative).display().to_string(), inside))
    };
    roots.get(saltenv).into_iter().flatten().filter_map(inside).collect()
}

/// Whether a file appears to be text, by Salt's rule: no NUL, and under 30 % unprintable bytes at its start.
fn is_text(path: &Path) -> Result<bool, CallError> {
    let failed = |error| CallError::execution(format!("reading {} failed: {error}", path.display()));
    let mut sample = Vec::new();
    File::open(path).map_err(failed)?.take(SAMPLE).read_to_end(&mut sample).map_err(failed)?;
    // A character that is cut by the end of the sample still counts as text.
    let is_utf8 = match std::str::from_utf8(&sample) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    let is_plain = |byte: &u8| matches!(byte, 0x08 | b'\t' | b'\n' | 0x0c | b'\r' | 0x1b | 0x20..=0x7e);
    let odd = sample.iter().filter(|byte| !is_plain(byte)).count();
    Ok(!sample.contains(&0) && (is_utf8 || odd * 10 <= sample.len() * 3))
}

/// Returns the content of a directory. Links are listed as the type of their target, and not followed.
fn listed(directory: &Path, left: &mut usize, above: &mut HashSet<(u64, u64)>) -> Result<Map, CallError> {
    let mut listing = Map::new();
    let Ok(entries) = fs::read_dir(directory) else { return Ok(listing) };
    let Ok(identity) = fs::metadata(directory).map(|stat| (stat.dev(), stat.ino())) else { return Ok(listing) };
    if !above.insert(identity) {
        return Ok(listing);
    }
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        *left = left.checked_sub(1).ok_or_else(|| {
            CallError::execution(format!("listing the roots failed: expected at most {MAX_ENTRIES} files"))
        })?;
        let name = Value::from(entry.file_name().to_string_lossy().into_owned());
        let path = entry.path();
        let value = if !path.is_dir() {
            "f".into()
        } else if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            Value::map()
        } else {
            listed(&path, left, above)?.into()
        };
        listing.insert(name, value);
    }
    above.remove(&identity);
    Ok(listing)
}

#[cfg(test)]
mod tests;
