//! `incron`: commands that incron runs when files change.

use std::path::{Path, PathBuf};

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::{Output, Program};
use brine_host::programs::{argument, program};
use brine_modules_files::cmd::Scratch;
use brine_system::files;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `incron`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "incron",
    [raw_system_incron, raw_incron, list_tab, ls, set_job, rm_job, rm, write_incron_file, write_incron_file_verbose]
);

/// The user name that stands for the system's table.
const SYSTEM: &str = "system";
/// The events and options of a mask.
const MASKS: [&str; 19] = [
    "IN_ACCESS",
    "IN_ATTRIB",
    "IN_CLOSE_WRITE",
    "IN_CLOSE_NOWRITE",
    "IN_CREATE",
    "IN_DELETE",
    "IN_DELETE_SELF",
    "IN_MODIFY",
    "IN_MOVE_SELF",
    "IN_MOVED_FROM",
    "IN_MOVED_TO",
    "IN_OPEN",
    "IN_ALL_EVENTS",
    "IN_MOVE",
    "IN_CLOSE",
    "IN_DONT_FOLLOW",
    "IN_ONESHOT",
    "IN_ONLYDIR",
    "IN_NO_LOOP",
];

/// A watch: the path, the mask of events, and the command.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Watch {
    path: String,
    mask: String,
    command: String,
}

/// A table: the lines that are not watches, and the watches.
#[derive(Debug, Default)]
struct Table {
    lines: Vec<String>,
    watches: Vec<Watch>,
}

impl Table {
    fn parse(text: &str) -> Self {
        let mut table = Table::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                // As in Salt, a line whose command is a single word is not recognized as a watch.
                [path, mask, _, _, ..] => table.watches.push(Watch {
                    path: path.to_owned(),
                    mask: mask.to_owned(),
                    command: words[2..].join(" "),
                }),
                _ => table.lines.push(line.to_owned()),
            }
        }
        table
    }

    fn text(&self) -> String {
        let watches = self.watches.iter().map(|watch| format!("{} {} {}", watch.path, watch.mask, watch.command));
        self.lines.iter().cloned().chain(watches).map(|line| line + "\n").collect()
    }
}

/// Return the content of the system's table.
///
/// CLI Example:
///
///     salt '*' incron.raw_system_incron
#[function]
pub fn raw_system_incron(_context: &Context) -> CallResult {
    Ok(files::read_if_exists(system_table()).map_err(CallError::execution)?.unwrap_or_default().into())
}

/// Return the content of a user's table.
///
/// CLI Example:
///
///     salt '*' incron.raw_incron root
#[function]
pub fn raw_incron(
    context: &Context,
    /// User whose table it is.
    user: String,
) -> CallResult {
    Ok(incrontab(context, &user, &["-l".to_owned(), argument(&user)?])?.stdout.into())
}

/// Return the parts of a user's table: `crons`, each with `path`, `mask` and `cmd`, and the other lines, `pre`. The
/// user `system` means the table of the system.
///
/// CLI Example:
///
///     salt '*' incron.list_tab root
#[function]
pub fn list_tab(
    context: &Context,
    /// User whose table it is.
    user: String,
) -> CallResult {
    let table = read(context, &user)?;
    let about = |watch: &Watch| -> Map {
        map! {"path" => &watch.path, "mask" => &watch.mask, "cmd" => &watch.command}
    };
    Ok(map! {"crons" => table.watches.iter().map(about).collect::<Value>(), "pre" => table.lines}.into())
}

/// Return the parts of a user's table, as `list_tab`.
///
/// CLI Example:
///
///     salt '*' incron.ls root
#[function]
pub fn ls(
    context: &Context,
    /// User whose table it is.
    user: String,
) -> CallResult {
    list_tab(context, user)
}

/// Run a command when a path changes. `mask` is a list of events, separated by commas. A watch of the same path and
/// command is replaced if it has one of them. Returns `new`, `updated` or `present`.
///
/// CLI Example:
///
///     salt '*' incron.set_job root /root IN_MODIFY 'echo "$$ $@ $# $% $&"'
#[function]
pub fn set_job(
    context: &Context,
    /// User whose table it is.
    user: String,
    /// Path that is watched.
    path: String,
    /// Events, such as `IN_MODIFY`.
    mask: String,
    /// Command to run.
    cmd: String,
) -> CallResult {
    let watch = match watch(&path, &mask, &cmd)? {
        Ok(watch) => watch,
        Err(wrong) => return Ok(wrong.into()),
    };
    let kinds = |mask: &str| {
        let mut kinds: Vec<String> = mask.split(',').map(str::to_owned).collect();
        kinds.sort();
        kinds
    };
    let (mut table, new) = (read(context, &user)?, kinds(&watch.mask));
    let is_same = |have: &Watch| have.path == watch.path && have.command == watch.command;
    if table.watches.iter().any(|have| is_same(have) && kinds(&have.mask) == new) {
        return Ok("present".into());
    }
    let before = table.watches.len();
    table.watches.retain(|have| !(is_same(have) && kinds(&have.mask).iter().any(|kind| new.contains(kind))));
    let outcome = if table.watches.len() < before { "updated" } else { "new" };
    table.watches.push(watch);
    write(context, &user, &table, outcome)
}

/// Remove a watch: the first one with this path, mask and command. Returns `removed` or `absent`.
///
/// CLI Example:
///
///     salt '*' incron.rm_job root /root IN_MODIFY 'echo changed'
#[function]
pub fn rm_job(
    context: &Context,
    /// User whose table it is.
    user: String,
    /// Path that is watched.
    path: String,
    /// Events, such as `IN_MODIFY`.
    mask: String,
    /// Command to run.
    cmd: String,
) -> CallResult {
    let watch = match watch(&path, &mask, &cmd)? {
        Ok(watch) => watch,
        Err(wrong) => return Ok(wrong.into()),
    };
    let mut table = read(context, &user)?;
    let Some(place) = table.watches.iter().position(|have| *have == watch) else { return Ok("absent".into()) };
    table.watches.remove(place);
    write(context, &user, &table, "removed")
}

/// Remove a watch, as `rm_job`.
///
/// CLI Example:
///
///     salt '*' incron.rm root /root IN_MODIFY 'echo changed'
#[function]
pub fn rm(
    context: &Context,
    /// User whose table it is.
    user: String,
    /// Path that is watched.
    path: String,
    /// Events, such as `IN_MODIFY`.
    mask: String,
    /// Command to run.
    cmd: String,
) -> CallResult {
    rm_job(context, user, path, mask, cmd)
}

/// Install a file as a user's table, and return whether it was accepted.
///
/// CLI Example:
///
///     salt '*' incron.write_incron_file root /tmp/new_incron
#[function]
pub fn write_incron_file(
    context: &Context,
    /// User whose table it is.
    user: String,
    /// Path that is watched.
    path: String,
) -> CallResult {
    let output = incrontab(context, &user, &[argument(&path)?])?;
    context.set_retcode(output.retcode);
    Ok((output.retcode == 0).into())
}

/// Install a file as a user's table, and return the exit status and the output.
///
/// CLI Example:
///
///     salt '*' incron.write_incron_file_verbose root /tmp/new_incron
#[function]
pub fn write_incron_file_verbose(
    context: &Context,
    /// User whose table it is.
    user: String,
    /// Path that is watched.
    path: String,
) -> CallResult {
    let output = incrontab(context, &user, &[argument(&path)?])?;
    context.set_retcode(output.retcode);
    let Output { pid, retcode, stdout, stderr, .. } = output;
    Ok(map! {"pid" => pid, "retcode" => retcode, "stdout" => stdout, "stderr" => stderr}.into())
}

/// Creates a watch. The inner error is the message for an invalid mask.
fn watch(path: &str, mask: &str, command: &str) -> Result<Result<Watch, String>, CallError> {
    let mask = mask.to_uppercase();
    if let Some(wrong) = mask.split(',').find(|kind| !MASKS.contains(kind)) {
        return Ok(Err(format!("Invalid mask type: {wrong}")));
    }
    // A line break would add another watch.
    for (what, text) in [("path", path), ("command", command)] {
        if text.chars().any(char::is_control) || (what == "path" && text.contains(' ')) {
            let rule = if what == "path" { "no blanks and one line" } else { "one line" };
            return Err(CallError::Execution(format!("the {what} is invalid: expected {rule}")));
        }
    }
    let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Ok(Watch { path: path.to_owned(), mask, command }))
}

fn read(context: &Context, user: &str) -> Result<Table, CallError> {
    let text = if user == SYSTEM { raw_system_incron(context)? } else { raw_incron(context, user.to_owned())? };
    Ok(Table::parse(&text.to_string()))
}

/// Writes a table, and returns the outcome or the error message of `incrontab`.
fn write(context: &Context, user: &str, table: &Table, outcome: &str) -> CallResult {
    if user == SYSTEM {
        let path = system_table();
        let directory = path.parent().unwrap_or(Path::new("/"));
        if !directory.is_dir() {
            return Err(CallError::Execution("/etc/incron.d/ does not exist: install incron".into()));
        }
        files::rewrite(&path, table.text().as_bytes(), 0o644).map_err(CallError::execution)?;
        return Ok(outcome.into());
    }
    let file = Scratch::new(table.text().as_bytes(), Some(user))?;
    let output = incrontab(context, user, &[file.path().to_string_lossy().into_owned()])?;
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
        return Ok(output.stderr.trim_end().into());
    }
    Ok(outcome.into())
}

/// Runs `incrontab` as a user.
fn incrontab(context: &Context, user: &str, arguments: &[String]) -> Result<Output, CallError> {
    if user == SYSTEM {
        return Err(CallError::Execution("'system' is no user: its table is /etc/incron.d/salt".into()));
    }
    let words = [&["incrontab".to_owned()], arguments].concat();
    let runas = (user != "root").then(|| user.to_owned());
    let program = Program { runas, keep_line_ends: true, ..program(&words, &[]) };
    context.run_program(&program).map_err(CallError::execution)
}

fn system_table() -> PathBuf {
    PathBuf::from("/etc/incron.d/salt")
}

#[cfg(test)]
mod tests;
