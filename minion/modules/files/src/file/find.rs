//! `file.find`: searches for files.

use std::cmp::Ordering;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::paths::expand;
use brine_host::process::{Program, split};
use brine_host::programs::program;
use brine_system::user_files;
use brine_text::python_regex::{IGNORECASE, Regex};
use brine_value::{FromValue, Map, Value};
use nix::unistd::{Gid, Group, Uid, User};

use super::kind;
use crate::checksum::digest;

/// Execution functions of `file`.
pub static FUNCTIONS: Functions<Context> = registry!("file", [find]);

/// Return the paths below a path that match all criteria, and apply actions to each. Criteria apply to the targets
/// of links, but links are not followed into directories.
///
/// Criteria: `name` and `iname` (a glob), `regex` and `iregex` (of the name), `type` (letters of `bcdpfls`),
/// `owner`, `group`, `size` (`[+-]10k`), `mtime` (`-3d12h` for changed since then, `3d` for before), `grep` (a
/// regular expression of the content), `mindepth`, `maxdepth`. Actions: `print` (`group`, `md5`, `mode`, `mtime`,
/// `name`, `path`, `size`, `type`, `user`), `delete` (types, or `a` for all; with `test=True` they are only
/// listed), and `exec`, a command that is run without a shell, with `{}` replaced by the path.
///
/// CLI Example:
///
///     salt '*' file.find / type=f name=\*.bak size=+10m
///     salt '*' file.find /var/log name=\*.[0-9] mtime=+30d print=path,size,mtime
#[function]
pub fn find(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Criteria such as `print` or `delete` without a value.
    #[rest]
    args: Vec<Value>,
    /// Criteria and actions with a value, such as `name`, `type`, `mtime`, `size`, `maxdepth` and `print`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut criteria = kwargs;
    if args.iter().any(|word| word.as_str() == Some("delete")) {
        criteria.insert("delete".into(), "f".into());
    }
    let desired = match Desired::new(&criteria) {
        Ok(desired) => desired,
        Err(error) => return Ok(format!("error: {error}").into()),
    };
    let mut matches = Vec::new();
    for start in expand_pattern(&expand(&path)) {
        desired.walk(context, &start, &mut matches)?;
    }
    matches.sort_by(order);
    Ok(matches.into())
}

/// Expands a path with `*`, `?` or `[`; any other path is returned if it exists.
fn expand_pattern(path: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for part in path.components() {
        let part = part.as_os_str();
        let name = part.to_string_lossy();
        if !name.contains(['*', '?', '[']) {
            paths =
                paths.into_iter().map(|path| path.join(part)).filter(|path| path.symlink_metadata().is_ok()).collect();
            continue;
        }
        let fits = |entry: &std::fs::DirEntry| {
            let own = entry.file_name().to_string_lossy().into_owned();
            (!own.starts_with('.') || name.starts_with('.')) && brine_text::glob::fnmatch(&name, &own)
        };
        let inside = |path: &PathBuf| {
            std::fs::read_dir(path)
                .into_iter()
                .flatten()
                .flatten()
                .filter(fits)
                .map(|entry| entry.path())
                .collect::<Vec<_>>()
        };
        paths = paths.iter().flat_map(inside).collect();
    }
    paths
}

/// Orders integers before strings, and lists item by item.
fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::List(a), Value::List(b)) => {
            let differing = a.iter().zip(b).map(|(a, b)| order(a, b)).find(|order| order.is_ne());
            differing.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (a, b) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => a.to_string().cmp(&b.to_string()),
        },
    }
}

/// A criterion for files.
enum Criterion {
    Name(Regex),
    Types(String),
    Owners(Vec<u32>),
    Groups(Vec<u32>),
    Size(u64, u64),
    ChangedSince(SystemTime),
    ChangedBefore(SystemTime),
    Content(Regex),
}

/// An action on a file.
enum Action {
    Print(Vec<String>),
    Delete,
    Exec(String),
}

struct Desired {
    criteria: Vec<Criterion>,
    actions: Vec<Action>,
    min_depth: usize,
    max_depth: usize,
    dry_run: bool,
}

impl Desired {
    fn new(criteria: &Map) -> Result<Self, String> {
        let depth = |name: &str| criteria.get(name).and_then(usize::from_value);
        let mut desired = Desired {
            criteria: Vec::new(),
            actions: Vec::new(),
            min_depth: depth("mindepth").unwrap_or(0),
            max_depth: depth("maxdepth").unwrap_or(usize::MAX),
            dry_run: criteria.get("test").is_some_and(Value::is_truthy),
        };
        for (key, value) in criteria {
            let key = key.to_string();
            if key.starts_with('_') || ["mindepth", "maxdepth", "test"].contains(&key.as_str()) {
                continue;
            }
            if !value.is_truthy() {
                return Err(format!("missing value for \"{key}\" option"));
            }
            let text = value.to_string();
            desired.criteria.push(match key.as_str() {
                "name" => Criterion::Name(expression(&glob(&text), false)?),
                "iname" => Criterion::Name(expression(&glob(&text), true)?),
                "regex" => Criterion::Name(expression(&text, false)?),
                "iregex" => Criterion::Name(expression(&text, true)?),
                "type" => Criterion::Types(types(&text)?),
                "owner" => Criterion::Owners(numbers(&text, "user", |name| {
                    User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
                })?),
                "group" => Criterion::Groups(numbers(&text, "group", |name| {
                    Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw())
                })?),
                "size" => size(&text)?,
                "mtime" => changed(&text)?,
                "grep" => Criterion::Content(expression(&text, false)?),
                "print" => {
                    desired.actions.push(Action::Print(listed(&text).map(str::to_owned).collect()));
                    continue;
                }
                "delete" => {
                    let types = types(if text.contains('a') { "bcdpfls" } else { &text })?;
                    desired.actions.push(Action::Delete);
                    Criterion::Types(types)
                }
                "exec" => {
                    desired.actions.push(Action::Exec(text));
                    continue;
                }
                _ => return Err(format!("invalid option \"{key}\"")),
            });
        }
        if desired.actions.is_empty() {
            desired.actions.push(Action::Print(vec!["path".into()]));
        }
        Ok(desired)
    }

    fn walk(&self, context: &Context, start: &Path, matches: &mut Vec<Value>) -> Result<(), CallError> {
        let mut open = vec![(start.to_owned(), 0)];
        while let Some((path, depth)) = open.pop() {
            let Ok(own) = std::fs::symlink_metadata(&path) else { continue };
            let status = std::fs::metadata(&path).unwrap_or_else(|_| own.clone());
            if depth >= self.min_depth && self.criteria.iter().all(|criterion| criterion.matches(&path, &status)) {
                for action in &self.actions {
                    matches.extend(action.run(context, &path, &status, self.dry_run)?);
                }
            }
            // The root of the search may be a link.
            if depth < self.max_depth && (own.is_dir() || depth == 0 && status.is_dir()) {
                let inside = std::fs::read_dir(&path).into_iter().flatten().flatten();
                open.extend(inside.map(|entry| (entry.path(), depth + 1)));
            }
        }
        Ok(())
    }
}

impl Criterion {
    fn matches(&self, path: &Path, status: &Metadata) -> bool {
        match self {
            Criterion::Name(regex) => regex.is_match_at_start(&name(path)).unwrap_or(false),
            Criterion::Types(types) => types.contains(type_letter(status)),
            Criterion::Owners(uids) => uids.contains(&status.uid()),
            Criterion::Groups(gids) => gids.contains(&status.gid()),
            Criterion::Size(least, most) => (*least..=*most).contains(&status.len()),
            Criterion::ChangedSince(time) => status.modified().is_ok_and(|changed| changed >= *time),
            Criterion::ChangedBefore(time) => status.modified().is_ok_and(|changed| changed <= *time),
            Criterion::Content(regex) => {
                status.is_file()
                    && std::fs::read(path)
                        .is_ok_and(|content| regex.is_match(&String::from_utf8_lossy(&content)).unwrap_or(false))
            }
        }
    }
}

impl Action {
    /// Applies an action and returns its entry in the result. With `dry_run`, nothing is deleted.
    fn run(
        &self,
        context: &Context,
        path: &Path,
        status: &Metadata,
        dry_run: bool,
    ) -> Result<Option<Value>, CallError> {
        let full = path.display().to_string();
        match self {
            Action::Print(fields) => {
                let mut report =
                    fields.iter().filter_map(|field| field_of(field, path, status)).collect::<Result<Vec<_>, _>>()?;
                Ok(Some(if report.len() == 1 { report.remove(0) } else { report.into() }))
            }
            Action::Delete if dry_run => Ok(Some(full.into())),
            Action::Delete => {
                let removed = user_files::remove_dir_all(path);
                if let Err(error) = &removed {
                    tracing::error!(path = %full, %error, "file.find failed to delete a file");
                }
                Ok(removed.is_ok().then(|| full.into()))
            }
            Action::Exec(command) => {
                // The path remains one argument, even with blanks in it.
                let words = split(command).unwrap_or_default();
                let words: Vec<String> = words.into_iter().map(|word| word.replace("{}", &full)).collect();
                let command = command.replace("{}", &full);
                if words.is_empty() {
                    return Ok(Some(format!("{full}: Failed").into()));
                }
                let program = Program { keep_line_ends: true, ..program(&words, &[]) };
                let ended = context.run_program(&program);
                Ok(Some(match ended {
                    Ok(output) => format!("{command}:\n{}\n", output.stdout).into(),
                    Err(error) => {
                        tracing::error!(command, %error, "file.find failed to run a command");
                        format!("{full}: Failed").into()
                    }
                }))
            }
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn field_of(field: &str, path: &Path, status: &Metadata) -> Option<Result<Value, CallError>> {
    Some(Ok(match field {
        "path" => path.display().to_string().into(),
        "name" => name(path).into(),
        "size" => (status.len() as i64).into(),
        "type" => type_letter(status).to_string().into(),
        "mode" => i64::from(status.mode() & 0o777).into(),
        "mtime" => status.mtime().into(),
        "user" => user_of(status.uid()).map_or_else(|| i64::from(status.uid()).into(), |user| user.name.into()),
        "group" => group_of(status.gid()).map_or_else(|| i64::from(status.gid()).into(), |group| group.name.into()),
        "md5" if status.is_file() => {
            return Some(digest(path, "md5").map(Value::from));
        }
        "md5" => "".into(),
        _ => return None,
    }))
}

fn type_letter(status: &Metadata) -> char {
    match kind(status) {
        "dir" => 'd',
        "link" => 'l',
        "block" => 'b',
        "char" => 'c',
        "pipe" => 'p',
        "socket" => 's',
        _ => 'f',
    }
}

/// Translates a glob to a regular expression as Salt does: `?` also matches the empty string.
fn glob(pattern: &str) -> String {
    format!("{}$", pattern.replace('.', "\\.").replace('?', ".?").replace('*', ".*"))
}

/// Splits a list at commas or spaces.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ']).filter(|word| !word.is_empty())
}

/// Returns the IDs of users or groups, given by ID or name.
fn numbers(text: &str, what: &str, named: impl Fn(&str) -> Option<u32>) -> Result<Vec<u32>, String> {
    let number =
        |word: &str| word.parse().ok().or_else(|| named(word)).ok_or_else(|| format!("no such {what} \"{word}\""));
    listed(text).map(number).collect()
}

fn user_of(uid: u32) -> Option<User> {
    User::from_uid(Uid::from_raw(uid)).ok().flatten()
}

fn group_of(gid: u32) -> Option<Group> {
    Group::from_gid(Gid::from_raw(gid)).ok().flatten()
}

fn expression(text: &str, any_case: bool) -> Result<Regex, String> {
    Regex::with_flags(text, if any_case { IGNORECASE } else { 0 })
        .map_err(|_| format!("invalid regular expression: \"{text}\""))
}

fn types(text: &str) -> Result<String, String> {
    let letters: String = text.chars().filter(|c| !c.is_whitespace() && *c != ',').collect();
    match letters.chars().find(|letter| !"bcdpfls".contains(*letter)) {
        Some(letter) => Err(format!("invalid file type \"{letter}\"")),
        None => Ok(letters),
    }
}

fn size(text: &str) -> Result<Criterion, String> {
    let invalid = || format!("invalid size: \"{text}\"");
    let rest = text.trim();
    let number = rest.trim_start_matches(['+', '-']);
    let last = number.chars().last().map(|last| last.to_ascii_lowercase());
    let unit = match last {
        Some('b') => Some(1),
        Some('k') => Some(1 << 10),
        Some('m') => Some(1 << 20),
        Some('g') => Some(1 << 30),
        Some('t') => Some(1_u64 << 40),
        _ => None,
    };
    // Unit letters are one byte each.
    let number = if unit.is_some() { &number[..number.len() - 1] } else { number };
    let unit = unit.unwrap_or(1);
    let count: f64 = number.trim().parse().map_err(|_| invalid())?;
    let bytes = (count * unit as f64) as u64;
    Ok(match rest.chars().next() {
        Some('-') => Criterion::Size(0, bytes),
        Some('+') => Criterion::Size(bytes, u64::MAX),
        _ => Criterion::Size(bytes, bytes.saturating_add(unit - 1)),
    })
}

/// Parses a time span such as `1w2d3h`, with `-` for files changed within it, otherwise for files changed before it.
/// The span is rounded down to the smallest unit given.
fn changed(text: &str) -> Result<Criterion, String> {
    const UNITS: [(char, u64); 5] = [('w', 604_800), ('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
    let invalid = || format!("invalid time interval: '{text}'");
    let rest = text.trim();
    let mut rest = rest.strip_prefix(['+', '-']).unwrap_or(rest).trim();
    let (mut seconds, mut smallest, mut units) = (0.0, None, &UNITS[..]);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(invalid)?;
        let count: f64 = rest[..end].parse().map_err(|_| invalid())?;
        let after = rest[end..].trim_start();
        let unit = after.chars().next().ok_or_else(invalid)?.to_ascii_lowercase();
        let index = units.iter().position(|(letter, _)| *letter == unit).ok_or_else(invalid)?;
        seconds += count * units[index].1 as f64;
        smallest = Some(units[index].1);
        (units, rest) = (&units[index + 1..], after[1..].trim_start());
    }
    let smallest = smallest.ok_or_else(invalid)?;
    let before = Duration::from_secs(((seconds / smallest as f64) as u64).saturating_mul(smallest));
    let time = SystemTime::now().checked_sub(before).ok_or_else(invalid)?;
    Ok(if text.trim().starts_with('-') { Criterion::ChangedSince(time) } else { Criterion::ChangedBefore(time) })
}
