//! The end of a log.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use brine_system::user_files;

/// The size of the end that is read for a cause, in bytes.
const TAIL: u64 = 256 << 10;
/// The maximum length of a message in a finding.
const MAX_MESSAGE: usize = 300;

/// Returns the last bytes of a regular file, from the beginning of a line. Links of other users are not followed to
/// files that are not theirs.
pub fn tail(path: &Path, size: u64) -> std::io::Result<String> {
    let mut file = user_files::open(path)?;
    let status = file.metadata()?;
    if !status.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let start = status.len().saturating_sub(size);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        Some((_, rest)) if start > 0 => rest.to_owned(),
        _ => text,
    })
}

/// Returns the message of the last error in a log.
pub fn last_error(path: &Path) -> Option<String> {
    let text = tail(path, TAIL).ok()?;
    let line = text.lines().rev().find(|line| line.contains("[ERROR") || line.contains("[CRITICAL"))?;
    Some(line.chars().take(MAX_MESSAGE).collect())
}

/// Returns the last line of a log that contains a text.
pub fn last_with(path: &Path, part: &str) -> Option<String> {
    let text = tail(path, TAIL).ok()?;
    text.lines().rev().find(|line| line.contains(part)).map(|line| line.chars().take(MAX_MESSAGE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_begins_with_a_whole_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, "one [ERROR ] a\ntwo\nthree\n").unwrap();
        assert_eq!(tail(&path, 7).unwrap(), "three\n");
        assert_eq!(tail(&path, 1000).unwrap(), "one [ERROR ] a\ntwo\nthree\n");
        assert_eq!(last_error(&path).unwrap(), "one [ERROR ] a");
        assert_eq!(last_with(&path, "t").unwrap(), "three");
        assert!(tail(directory.path(), 10).is_err());
    }
}
