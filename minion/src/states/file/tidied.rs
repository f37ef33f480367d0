//! `file.tidied`: old or large files removed from a folder.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use brine_core::map;
use regex::Regex;

use super::bad_path;
use crate::states::{StateContext, StateReturn};

const DAY: f64 = 86400.0;

/// What is to be removed.
pub(super) struct Wanted {
    /// In days.
    pub age: f64,
    /// Regular expressions that the start of a name matches.
    pub matches: Vec<String>,
    pub rmdirs: bool,
    /// In bytes.
    pub size: u64,
    pub rmlinks: bool,
    pub all_of: bool,
    pub time: Time,
}

/// Which of its times says how old a file is.
pub(super) enum Time {
    Accessed,
    Modified,
    Changed,
}

pub(super) fn state(context: &StateContext, name: &str, wanted: &Wanted) -> StateReturn {
    if let Some(bad) = bad_path(name) {
        return bad;
    }
    let path = Path::new(name);
    if !path.is_dir() {
        return StateReturn::failed(name, format!("{name} does not exist or is not a directory."));
    }
    let patterns: Result<Vec<Regex>, _> =
        wanted.matches.iter().map(|pattern| Regex::new(&format!("^(?:{pattern})"))).collect();
    let patterns = match patterns {
        Ok(patterns) => patterns,
        Err(error) => return StateReturn::failed(name, format!("A pattern cannot be used: {error}")),
    };
    let mut found = Vec::new();
    collect(path, wanted, &patterns, &mut found);
    let told: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
    if told.is_empty() {
        return StateReturn::ok(name, format!("Nothing to remove from directory {name}"));
    }
    if context.test {
        return StateReturn::would(name, format!("{name} is set for tidy")).with_changes(map! {"removed" => told});
    }
    let mut removed = Vec::new();
    for (path, told) in found.iter().zip(told) {
        let is_folder = path.is_dir() && !path.is_symlink();
        let done = if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        if let Err(error) = done {
            return StateReturn::failed(name, format!("Failed to remove {told}: {error}"))
                .with_changes(map! {"removed" => removed});
        }
        removed.push(told);
    }
    StateReturn::ok(name, format!("Removed {} files or directories from directory {name}", removed.len()))
        .with_changes(map! {"removed" => removed})
}

/// What is in a folder and is to go: what is deepest first.
fn collect(folder: &Path, wanted: &Wanted, patterns: &[Regex], found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        let Ok(status) = std::fs::symlink_metadata(&entry) else { continue };
        let is_folder = status.is_dir();
        if is_folder {
            collect(&entry, wanted, patterns, found);
        }
        if (is_folder && !wanted.rmdirs) || (status.is_symlink() && !wanted.rmlinks) {
            continue;
        }
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        let seconds = match wanted.time {
            Time::Accessed => status.atime(),
            Time::Modified => status.mtime(),
            Time::Changed => status.ctime(),
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let is_old = (now.as_secs_f64() - seconds as f64) / DAY >= wanted.age;
        // The size of a folder says nothing.
        let is_large = is_folder || status.size() >= wanted.size;
        let by_what_it_is = if wanted.all_of { is_old && is_large } else { is_old || is_large };
        if by_what_it_is && patterns.iter().any(|pattern| pattern.is_match(&name)) {
            found.push(entry);
        }
    }
}

/// `1m`, `20k` or a number of bytes.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim().to_lowercase();
    let (digits, unit) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
    let factor: u64 = match unit {
        "" | "b" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return Err(format!("'{text}' is no size: write a number, with b, k, m, g or t behind it")),
    };
    let number: u64 = digits.trim().parse().map_err(|_| format!("'{text}' is no size"))?;
    Ok(number.saturating_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, size) in [("0", Some(0)), ("2k", Some(2048)), ("1M", Some(1 << 20)), ("3 b", Some(3)), ("x", None)] {
            assert_eq!(bytes(text).ok(), size, "{text}");
        }
    }
}
