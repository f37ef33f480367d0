//! `file.tidied`: removes old or large files from a directory.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, function};
use brine_system::user_files;
use brine_text::python_regex::Regex;
use brine_value::{Map, Value, map};
use jiff::Timestamp;
use jiff::civil::Date;

use super::invalid_path;

/// The arguments of `file.tidied`.
#[derive(Args)]
pub struct TidiedArgs {
    /// Path of the directory.
    name: String,
    /// Age in days from which files are removed.
    #[default(0.0)]
    age: f64,
    /// Regular expressions of names, one of which must match.
    #[default]
    matches: Value,
    /// Whether directories are removed too.
    #[default(false)]
    rmdirs: bool,
    /// Size from which files are removed, such as `10m`.
    #[default(0.into())]
    size: Value,
    /// Regular expressions of names that are kept.
    #[default]
    exclude: Value,
    /// Whether the expressions are matched against whole paths.
    #[default(false)]
    full_path_match: bool,
    /// Whether symbolic links to directories are followed.
    #[default(false)]
    followlinks: bool,
    /// Which time the age is measured by: `atime`, `mtime` or `ctime`.
    #[default("atime".into())]
    time_comparison: String,
    /// Whether age and size must both be reached (`AND`) or one of them (`OR`).
    #[default("OR".into())]
    age_size_logical_operator: String,
    /// `age` or `size`: the other one is ignored.
    age_size_only: Option<String>,
    /// Whether symbolic links are removed too.
    #[default(true)]
    rmlinks: bool,
    /// Further arguments, ignored.
    #[keywords(brine_function::unused)]
    _kwargs: Map,
}

/// Ensure that a directory has no files that are older than `age` days or at least `size` large, or both with
/// `age_size_logical_operator: AND`, or only one of them with `age_size_only`.
///
/// SLS Example:
///
///     /var/tmp/app:
///       file.tidied:
///         - age: 7
///         - matches:
///           - '.*\.tmp$'
///         - rmdirs: True
#[function]
pub fn tidied(context: &StateContext, #[args] args: TidiedArgs) -> CallResult {
    let matches = if args.matches.is_nil() { patterns(&".*".into()) } else { patterns(&args.matches) };
    let patterns = matches.and_then(|matches| Ok((matches, patterns(&args.exclude)?)));
    let (matches, exclude) = match patterns {
        Ok(patterns) => patterns,
        Err(error) => return Ok(StateReturn::failed(&args.name, error).into()),
    };
    let desired = Desired {
        age: args.age,
        matches,
        exclude,
        rmdirs: args.rmdirs,
        rmlinks: args.rmlinks,
        full_path_match: args.full_path_match,
        followlinks: args.followlinks,
        size: bytes(&args.size.to_string()),
        time: Time::named(&args.time_comparison),
        combination: Combination::new(args.age_size_only.as_deref(), &args.age_size_logical_operator),
    };
    Ok(state(context, &args.name, &desired).into())
}

/// Criteria for removal.
pub(super) struct Desired {
    /// In days, as the difference of dates.
    pub age: f64,
    /// Patterns for the start of a name, or of a whole path.
    pub matches: Vec<Regex>,
    /// Patterns for the start of names that are kept.
    pub exclude: Vec<Regex>,
    pub rmdirs: bool,
    /// In bytes.
    pub size: f64,
    pub rmlinks: bool,
    pub full_path_match: bool,
    pub followlinks: bool,
    pub time: Time,
    pub combination: Combination,
}

/// The time that a file's age is measured by.
pub(super) enum Time {
    Accessed,
    Modified,
    Changed,
}

impl Time {
    /// Returns the time with this name; the access time by default.
    pub fn named(name: &str) -> Self {
        match name.to_lowercase().as_str() {
            "mtime" => Time::Modified,
            "ctime" => Time::Changed,
            _ => Time::Accessed,
        }
    }

    fn days_ago(&self, status: &Metadata, today: Date) -> f64 {
        let seconds = match self {
            Time::Accessed => status.atime(),
            Time::Modified => status.mtime(),
            Time::Changed => status.ctime(),
        };
        let Ok(moment) = Timestamp::from_second(seconds) else { return 0.0 };
        let date = moment.to_zoned(brine_clock::zone()).date();
        today.since(date).map_or(0.0, |span| f64::from(span.get_days().abs()))
    }
}

/// Combination of age and size.
pub(super) enum Combination {
    Both,
    Either,
    Age,
    Size,
}

impl Combination {
    /// Parses `age_size_only` and `age_size_logical_operator`.
    pub fn new(only: Option<&str>, operator: &str) -> Self {
        match only.map(str::to_lowercase).as_deref() {
            Some("age") => Combination::Age,
            Some("size") => Combination::Size,
            _ if operator.eq_ignore_ascii_case("and") => Combination::Both,
            _ => Combination::Either,
        }
    }

    fn matches(&self, is_old: bool, is_large: bool) -> bool {
        match self {
            Combination::Both => is_old && is_large,
            Combination::Either => is_old || is_large,
            Combination::Age => is_old,
            Combination::Size => is_large,
        }
    }
}

/// Compiles one regular expression or a list of them.
pub(super) fn patterns(value: &Value) -> Result<Vec<Regex>, String> {
    let single = [value.clone()];
    let texts = value.as_list().unwrap_or(&single).iter().filter(|text| text.is_truthy());
    texts
        .map(|text| {
            Regex::new(&text.to_string()).map_err(|error| format!("The pattern '{text}' cannot be used: {error}"))
        })
        .collect()
}

pub(super) fn state(context: &StateContext, name: &str, desired: &Desired) -> StateReturn {
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let path = Path::new(name);
    if !path.is_dir() {
        return StateReturn::failed(name, format!("{name} does not exist or is not a directory."));
    }
    let mut paths = Vec::new();
    desired.collect(path, 0, brine_clock::now().date(), &mut paths);
    let report: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if report.is_empty() {
        return StateReturn::ok(name, format!("Nothing to remove from directory {name}"));
    }
    if context.test {
        return StateReturn::predicted(name, format!("{name} is set for tidy"))
            .with_changes(map! {"removed" => report});
    }
    let mut removed = Vec::new();
    for (path, report) in paths.iter().zip(report) {
        let result = user_files::remove_dir_all(path);
        if let Err(error) = result {
            return StateReturn::failed(name, format!("Failed to remove {report}: {error}"))
                .with_changes(map! {"removed" => removed});
        }
        removed.push(report);
    }
    StateReturn::ok(name, format!("Removed {} files or directories from directory {name}", removed.len()))
        .with_changes(map! {"removed" => removed})
}

/// Maximum depth for followed links: deeper is a loop.
const MAX_DEPTH: usize = 40;

impl Desired {
    /// Collects the paths to remove from a directory, deepest first.
    fn collect(&self, directory: &Path, depth: usize, today: Date, paths: &mut Vec<PathBuf>) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        entries.sort();
        for entry in entries {
            let Ok(status) = std::fs::symlink_metadata(&entry) else { continue };
            if status.is_dir() || self.followlinks && status.is_symlink() && entry.is_dir() && depth < MAX_DEPTH {
                self.collect(&entry, depth + 1, today, paths);
            }
            if self.should_remove(&entry, &status, today) {
                paths.push(entry);
            }
        }
    }

    fn should_remove(&self, path: &Path, status: &Metadata, today: Date) -> bool {
        if status.is_dir() && !self.rmdirs || status.is_symlink() && !self.rmlinks {
            return false;
        }
        // The size of directories and links is ignored.
        let size = if status.is_dir() || status.is_symlink() { 0 } else { status.size() };
        let is_old = self.time.days_ago(status, today) >= self.age;
        let name = if self.full_path_match { path.as_os_str() } else { path.file_name().unwrap_or_default() };
        let name = name.to_string_lossy();
        let fits =
            |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match_at_start(&name).unwrap_or(false));
        self.combination.matches(is_old, size as f64 >= self.size) && fits(&self.matches) && !fits(&self.exclude)
    }
}

/// Parses a number of bytes with an optional unit: `k`, `kib` and so on of 1024, `kb` of 1000. Anything else is 0.
pub(super) fn bytes(text: &str) -> f64 {
    let text = text.trim().to_lowercase();
    let (digits, unit) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
    let (letter, base) = match unit.as_bytes() {
        [] | b"b" => (None, 1024_f64),
        [letter] | [letter, b'i', b'b'] => (Some(*letter), 1024.0),
        [letter, b'b'] => (Some(*letter), 1000.0),
        _ => return 0.0,
    };
    let power = match letter.map(|letter| b"kmgtpezy".iter().position(|unit| *unit == letter)) {
        None => 0,
        Some(Some(index)) => index as i32 + 1,
        Some(None) => return 0.0,
    };
    digits.trim().parse::<f64>().unwrap_or(0.0) * base.powi(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, size) in [
            ("0", 0.0),
            ("2k", 2048.0),
            ("1M", 1_048_576.0),
            ("1MB", 1_000_000.0),
            ("1.5KiB", 1536.0),
            ("3 b", 3.0),
            ("x", 0.0),
        ] {
            assert!((bytes(text) - size).abs() < 0.5, "{text}");
        }
    }

    #[test]
    fn age_and_size_are_combined_or_used_alone() {
        for (only, operator, old_and_small, young_and_large) in [
            (None, "OR", true, true),
            (None, "and", false, false),
            (Some("Age"), "AND", true, false),
            (Some("size"), "AND", false, true),
            (Some("other"), "OR", true, true),
        ] {
            let combination = Combination::new(only, operator);
            let matched = (combination.matches(true, false), combination.matches(false, true));
            assert_eq!(matched, (old_and_small, young_and_large), "{only:?} {operator}");
        }
    }
}
