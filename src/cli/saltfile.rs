//! Saltfiles: options of the tools in a file, by tool. The command line takes precedence over it, and it over the
//! configuration.
//!
//! As in Salt the file is that of `--saltfile`, of `SALT_SALTFILE`, `Saltfile` in the current directory, or
//! `~/.salt/Saltfile`. A file that another user could have written is not read: it could name another configuration.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use brine_value::{Map, Value};
use clap::{Arg, ArgAction, Command};

/// The default name of the file.
const NAME: &str = "Saltfile";
/// The option that names a file.
const OPTION: &str = "--saltfile";
/// The names of options that differ from those on the command line, as in Salt.
const NAMES: &[(&str, &str)] = &[
    ("output", "out"),
    ("output_file", "out-file"),
    ("output_file_append", "out-file-append"),
    ("output_indent", "out-indent"),
    ("raw_shell", "raw"),
    ("list_hosts", "hosts"),
    ("batch", "batch-size"),
    ("cli_summary", "summary"),
    ("pidfile", "pid-file"),
    ("log_level_logfile", "log-file-level"),
];

/// The options of the file that have no counterpart on the command line: they override the configuration.
static OVERRIDES: OnceLock<Map> = OnceLock::new();

/// Returns the options that override the configuration: those given here, and below them those of the Saltfile.
pub fn overridden(overrides: &Map) -> Map {
    let mut all = OVERRIDES.get().cloned().unwrap_or_default();
    all.extend(overrides.clone());
    all
}

/// Returns the words of a command line with the tool's options of the Saltfile before them.
///
/// # Errors
/// A message if the named file does not exist, or the file is invalid.
pub fn apply(tool: &str, command: &Command, words: &[OsString]) -> Result<Vec<OsString>, String> {
    let Some(path) = find(words)? else { return Ok(words.to_vec()) };
    let failed = |error: &dyn std::fmt::Display| format!("the Saltfile {} is invalid: {error}", path.display());
    let text = brine_system::files::read_to_string(&path).map_err(|error| failed(&error))?;
    let all = brine_yaml::load(&text).map_err(|error| failed(&error))?;
    let Some(options) = all.get(tool) else { return Ok(words.to_vec()) };
    let options = options.as_map().ok_or_else(|| failed(&format!("expected a mapping of options below '{tool}'")))?;
    let (mut before, mut left) = (Vec::new(), Map::new());
    for (name, value) in options {
        let name = name.to_string();
        match argument(command, &name) {
            Some(arg) => before.extend(word(arg, value)),
            None => _ = left.insert(name.into(), value.clone()),
        }
    }
    // Parsed twice with --args-stdin: the first time counts.
    _ = OVERRIDES.set(left);
    Ok(before.into_iter().map(OsString::from).chain(words.iter().cloned()).collect())
}

/// Returns the file to read, if there is one.
fn find(words: &[OsString]) -> Result<Option<PathBuf>, String> {
    let mut named = std::env::var_os("SALT_SALTFILE").filter(|path| !path.is_empty()).map(PathBuf::from);
    for (at, word) in words.iter().enumerate() {
        let text = word.to_string_lossy();
        if text == "--" {
            break;
        }
        if text == OPTION {
            named = words.get(at + 1).map(PathBuf::from);
        } else if let Some(path) = text.strip_prefix(OPTION).and_then(|rest| rest.strip_prefix('=')) {
            named = Some(path.into());
        }
    }
    if let Some(path) = named {
        return if path.is_file() { Ok(Some(path)) } else { Err(format!("'{}' file does not exist.", path.display())) };
    }
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".salt").join(NAME));
    let own = std::env::current_dir().ok().map(|directory| directory.join(NAME));
    Ok(own.into_iter().chain(home).find(|path| path.is_file() && is_trusted(path)))
}

/// Returns whether only this user or root can have written a file.
fn is_trusted(path: &Path) -> bool {
    let Ok(file) = std::fs::metadata(path) else { return false };
    let user = nix::unistd::geteuid().as_raw();
    let is_trusted = (file.uid() == user || file.uid() == 0) && file.mode() & 0o022 == 0;
    if !is_trusted {
        crate::ui::print_plain_error(format_args!(
            "{} is not read: it belongs to another user, or others may write to it; name it with {OPTION} to read it",
            path.display()
        ));
    }
    is_trusted
}

/// Returns the argument of the command line with this name in a Saltfile.
fn argument<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let long = NAMES.iter().find(|(of_file, _)| *of_file == name).map(|(_, long)| (*long).to_owned());
    let long = long.unwrap_or_else(|| name.replace('_', "-"));
    let short = long.strip_prefix("ssh-");
    command.get_arguments().find(|arg| {
        arg.get_long().is_some_and(|own| own == long || Some(own) == short)
            || arg.get_all_aliases().is_some_and(|all| all.contains(&long.as_str()))
    })
}

/// Returns the word for an option with this value; none for a flag that is off.
fn word(arg: &Arg, value: &Value) -> Vec<String> {
    let Some(long) = arg.get_long() else { return Vec::new() };
    match (arg.get_action(), value) {
        (ArgAction::SetTrue, value) => value.is_truthy().then(|| format!("--{long}")).into_iter().collect(),
        (_, Value::List(all)) => all.iter().map(|one| format!("--{long}={one}")).collect(),
        (_, value) => vec![format!("--{long}={value}")],
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn names_of_a_saltfile_are_options_or_override_the_configuration() {
        let command = Command::new("salt-ssh")
            .arg(Arg::new("max").long("max-procs").action(ArgAction::Set))
            .arg(Arg::new("wipe").long("wipe").action(ArgAction::SetTrue))
            .arg(Arg::new("out").long("out").alias("output").action(ArgAction::Set))
            .arg(Arg::new("option").long("ssh-option").alias("ssh-options").action(ArgAction::Append));
        let words = |name: &str, value: Value| argument(&command, name).map(|arg| word(arg, &value).join(" "));
        for (name, value, expected) in [
            ("ssh_max_procs", 30.into(), Some("--max-procs=30")),
            ("max_procs", 30.into(), Some("--max-procs=30")),
            ("ssh_wipe", true.into(), Some("--wipe")),
            ("ssh_wipe", false.into(), Some("")),
            ("output", "json".into(), Some("--out=json")),
            ("ssh_options", list!["A=1", "B=2"], Some("--ssh-option=A=1 --ssh-option=B=2")),
            ("file_roots", "x".into(), None),
        ] {
            assert_eq!(words(name, value).as_deref(), expected, "{name}");
        }
    }
}
