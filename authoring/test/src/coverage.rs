//! Coverage: the lines and branches of a tree's SLS files and templates that tests have rendered, as text, JSON and lcov.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use brine_jinja::coverage::{Condition, Coverage};
use brine_value::{Value, map};

use crate::discover;

/// The endings of files that are counted.
const ENDINGS: [&str; 3] = ["sls", "jinja", "j2"];
/// The maximum size of a file in bytes.
const MAX_SIZE: u64 = 1 << 20;

/// The coverage of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoveredFile {
    /// The path in reports: below the working directory, if it is there.
    pub path: PathBuf,
    /// The lines with content by number, and how often each was rendered.
    pub lines: Vec<(usize, u64)>,
    /// The conditions: the line of each, and how often each branch was rendered.
    pub conditions: Vec<(usize, Vec<u64>)>,
}

impl CoveredFile {
    fn of(path: PathBuf, source: &str, coverage: &Coverage) -> Self {
        let covered = coverage.of(source);
        let lines = lines_of(source).into_iter().map(|(number, at)| (number, covered.count(at))).collect();
        let line = |at: usize| source[..at].matches('\n').count() + 1;
        let conditions = covered.conditions.into_iter().map(|Condition { at, branches }| (line(at), branches));
        CoveredFile { path, lines, conditions: conditions.collect() }
    }

    /// Returns the number of rendered lines and of all.
    pub fn line_counts(&self) -> (usize, usize) {
        (self.lines.iter().filter(|(_, count)| *count > 0).count(), self.lines.len())
    }

    /// Returns the number of rendered branches and of all.
    pub fn branch_counts(&self) -> (usize, usize) {
        let all = || self.conditions.iter().flat_map(|(_, branches)| branches);
        (all().filter(|count| **count > 0).count(), all().count())
    }

    /// Returns the ranges of lines that were not rendered: `3-5, 9`.
    fn missing(&self) -> String {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        let mut is_open = false;
        for &(line, count) in &self.lines {
            match ranges.last_mut().filter(|_| is_open && count == 0) {
                Some((_, last)) => *last = line,
                None if count == 0 => ranges.push((line, line)),
                None => {}
            }
            is_open = count == 0;
        }
        let spans = ranges
            .iter()
            .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
        spans.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the coverage of all files below the roots of trees.
pub(crate) fn of_trees(roots: &[&Path], coverage: &Coverage) -> Vec<CoveredFile> {
    let working = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    let is_counted = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ENDINGS.iter().any(|counted| ending == *counted))
            && path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() <= MAX_SIZE)
    };
    let mut paths: Vec<_> = roots.iter().flat_map(|root| discover::files_below(root)).filter(is_counted).collect();
    paths.sort();
    paths.dedup();
    let covered = paths.into_iter().filter_map(|path| {
        let source = std::fs::read_to_string(&path).ok()?;
        // Only what Jinja renders is counted.
        let first = source.lines().next().unwrap_or_default();
        if first.starts_with("#!") && !first.contains("jinja") {
            return None;
        }
        let relative = path.strip_prefix(&working).map(Path::to_owned).unwrap_or(path);
        Some(CoveredFile::of(relative, &source, coverage))
    });
    covered.collect()
}

/// Returns the lines with content, each with the position of its first byte: neither comments nor lines that only close
/// or divide a block.
fn lines_of(source: &str) -> Vec<(usize, usize)> {
    let (mut lines, mut at, mut comment_end) = (Vec::new(), 0, 0);
    for (number, line) in source.split_inclusive('\n').enumerate() {
        let start = at + (line.len() - line.trim_start().len());
        at += line.len();
        let mut text = line.trim();
        if start < comment_end {
            text = source.get(comment_end..at).unwrap_or_default().trim();
        }
        if text.starts_with("{#") {
            let begun = at - line.len() + line.find("{#").unwrap_or_default();
            comment_end = source[begun..].find("#}").map_or(source.len(), |end| begun + end + 2);
            text = source.get(comment_end..at).unwrap_or_default().trim();
        }
        let word = text.strip_prefix("{%").map(|tag| tag.trim_start_matches(['-', '+', ' ']));
        let is_divider = word.is_some_and(|word| word.starts_with("end") || word.starts_with("else"));
        if !text.is_empty() && !text.starts_with('#') && !is_divider {
            lines.push((number + 1, start));
        }
    }
    lines
}

/// Returns a table: the lines and branches of each file, and the lines that were not rendered.
pub fn text(files: &[CoveredFile], escape: impl Fn(&str) -> String) -> String {
    let name = |file: &CoveredFile| escape(&file.path.display().to_string());
    let width = files.iter().map(|file| name(file).chars().count()).max().unwrap_or_default().max("total".len());
    let mut out = String::from("coverage\n");
    let mut row = |name: &str, lines: (usize, usize), branches: (usize, usize), missing: &str| {
        let percent = (lines.0 * 100).checked_div(lines.1).unwrap_or(100);
        let all = format!("{}/{}", lines.0, lines.1);
        let branches = format!("{}/{}", branches.0, branches.1);
        let row = format!("  {name:width$}  {percent:>3} % of lines {all:>9}, branches {branches:>7}  {missing}");
        // Writing into a `String` cannot fail.
        _ = writeln!(out, "{}", row.trim_end());
    };
    let sum = |counts: fn(&CoveredFile) -> (usize, usize)| {
        files.iter().map(counts).fold((0, 0), |(some, all), (more, of)| (some + more, all + of))
    };
    for file in files {
        let missing = file.missing();
        let missing = if missing.is_empty() { missing } else { format!("not rendered: {missing}") };
        row(&name(file), file.line_counts(), file.branch_counts(), &missing);
    }
    row("total", sum(CoveredFile::line_counts), sum(CoveredFile::branch_counts), "");
    out
}

/// Returns the counts in the format of lcov.
pub fn lcov(files: &[CoveredFile]) -> String {
    let mut out = String::new();
    for file in files {
        let (lines, branches) = (file.line_counts(), file.branch_counts());
        // Writing into a `String` cannot fail.
        _ = writeln!(out, "TN:\nSF:{}", file.path.display().to_string().replace(['\n', '\r'], "?"));
        for (number, (line, counts)) in file.conditions.iter().enumerate() {
            let is_reached = counts.iter().any(|count| *count > 0);
            for (branch, count) in counts.iter().enumerate() {
                let count = if is_reached { count.to_string() } else { "-".to_owned() };
                _ = writeln!(out, "BRDA:{line},{number},{branch},{count}");
            }
        }
        _ = writeln!(out, "BRF:{}\nBRH:{}", branches.1, branches.0);
        for (line, count) in &file.lines {
            _ = writeln!(out, "DA:{line},{count}");
        }
        _ = writeln!(out, "LF:{}\nLH:{}\nend_of_record", lines.1, lines.0);
    }
    out
}

/// Returns the counts as data.
pub(crate) fn to_value(files: &[CoveredFile]) -> Value {
    let entries = files.iter().map(|file| {
        let (lines, branches) = (file.line_counts(), file.branch_counts());
        let missing = file.lines.iter().filter(|(_, count)| *count == 0).map(|(line, _)| Value::from(*line as u64));
        Value::from(map! {
            "file" => file.path.display().to_string(),
            "lines" => lines.1 as u64,
            "rendered_lines" => lines.0 as u64,
            "branches" => branches.1 as u64,
            "rendered_branches" => branches.0 as u64,
            "missing_lines" => missing.collect::<Value>(),
        })
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_dividers_are_no_lines() {
        let source = "# c\na: 1\n\n{# one #}\n{# two\n  more\n#} b: 2\n{% if x %}\nc: {{ '#' }}\n{%- else -%}\n{% endif %}\n  {#- e #}\n";
        let numbers: Vec<usize> = lines_of(source).into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [2, 7, 8, 9]);
    }

    #[test]
    fn reports_say_what_was_not_rendered() {
        let file = CoveredFile {
            path: "web/init.sls".into(),
            lines: vec![(1, 2), (3, 0), (4, 0), (6, 1), (7, 0)],
            conditions: vec![(2, vec![2, 0]), (5, vec![0, 0])],
        };
        let files = [file];
        let report = text(&files, str::to_owned);
        assert_eq!(
            report,
            "coverage\n  web/init.sls   40 % of lines       2/5, branches     1/4  not rendered: 3-4, 7\n  \
             total          40 % of lines       2/5, branches     1/4\n"
        );
        assert_eq!(
            lcov(&files),
            "TN:\nSF:web/init.sls\nBRDA:2,0,0,2\nBRDA:2,0,1,0\nBRDA:5,1,0,-\nBRDA:5,1,1,-\nBRF:4\nBRH:1\nDA:1,2\nDA:3,0\n\
             DA:4,0\nDA:6,1\nDA:7,0\nLF:5\nLH:2\nend_of_record\n"
        );
    }
}
