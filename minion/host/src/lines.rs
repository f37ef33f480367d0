//! Lines such as `LANG=..` in small files of the system.

use std::path::Path;

use brine_function::CallError;
use brine_system::files;

/// The action if no line begins with the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Appends the line, and creates the file if necessary.
    Append,
    /// Leaves the file unchanged.
    Leave,
}

/// Replaces each line that begins with this prefix.
pub fn set(path: impl AsRef<Path>, start: &str, line: &str, missing: Missing) -> Result<(), CallError> {
    let path = path.as_ref();
    let text = files::read_if_exists(path).map_err(CallError::execution)?;
    let edited = with(text.as_deref().unwrap_or_default(), start, line, missing);
    if edited == text.unwrap_or_default() {
        return Ok(());
    }
    files::rewrite(path, edited.as_bytes(), 0o644).map_err(CallError::execution)
}

fn with(text: &str, start: &str, line: &str, missing: Missing) -> String {
    let exists = text.lines().any(|have| have.starts_with(start));
    let lines = text.lines().map(|have| if have.starts_with(start) { line } else { have });
    let added = (!exists && missing == Missing::Append).then_some(line);
    lines.chain(added).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_replaced_in_place() {
        assert_eq!(with("a=1\nb=2\na=3", "a=", "a=5", Missing::Append), "a=5\nb=2\na=5\n");
        assert_eq!(with("b=2", "a=", "a=5", Missing::Append), "b=2\na=5\n");
        assert_eq!(with("b=2\n", "a=", "a=5", Missing::Leave), "b=2\n");
    }
}
