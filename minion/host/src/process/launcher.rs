//! The launcher of `runas`: this binary, started under another name, changes to a user with all of its groups and
//! executes the program.
//!
//! The standard library can set the user and one group of a child and then clears the supplementary groups; anything
//! else requires unsafe code between fork and exec.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use brine_system::processes;
use nix::unistd::{User, geteuid, initgroups, setgid, setuid};

/// The name under which the binary acts as the launcher.
const NAME: &str = "brine-runas";
/// The running binary, also if the file was replaced since.
const SELF: &str = "/proc/self/exe";
/// The prefix of the program's variables while they pass through the launcher.
const PREFIX: &str = "BRINE_RUNAS_";
/// The default search path without `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// The exit status of shells for a program that cannot be executed.
const CANNOT_RUN: u8 = 126;

/// Whether this process is the binary that calls [`intercept`], and not a test or another program with this library.
static AVAILABLE: AtomicBool = AtomicBool::new(false);

/// Executes the program if these words invoke the launcher; returns the exit status if that fails. The binary calls it
/// before anything else.
pub fn intercept(words: &[OsString]) -> Option<u8> {
    AVAILABLE.store(true, Ordering::Relaxed);
    let [name, user, program, args @ ..] = words else { return None };
    if name != NAME {
        return None;
    }
    let error = match become_user(&user.to_string_lossy()) {
        Ok(()) => Command::new(program).args(args).env_clear().envs(own_variables()).exec(),
        Err(error) => error,
    };
    eprintln!("starting {} as {} failed: {error}", program.display(), user.display());
    Some(CANNOT_RUN)
}

fn become_user(name: &str) -> io::Result<()> {
    let user = User::from_name(name)?.ok_or(io::ErrorKind::NotFound)?;
    initgroups(&CString::new(name)?, user.gid)?;
    setgid(user.gid)?;
    setuid(user.uid)?;
    Ok(())
}

/// Returns a command that runs this one as another user. `clean_env` limits its environment to its own variables.
pub(super) fn for_user(command: Command, user: &User, clean_env: bool) -> io::Result<Command> {
    let own = geteuid();
    if user.uid == own {
        return Ok(command);
    }
    if !own.is_root() || !AVAILABLE.load(Ordering::Relaxed) {
        let mut command = command;
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        return Ok(command);
    }
    let mut env: BTreeMap<OsString, OsString> = if clean_env { BTreeMap::new() } else { std::env::vars_os().collect() };
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => env.insert(name.to_owned(), value.to_owned()),
            None => env.remove(name),
        };
    }
    // The launcher itself always starts: a missing program would only be visible in the exit status.
    let path = env.get(OsStr::new("PATH")).cloned().unwrap_or_else(|| DEFAULT_PATH.into());
    processes::find_in(Path::new(command.get_program()), &path)
        .ok_or_else(|| io::Error::from_raw_os_error(nix::Error::ENOENT as i32))?;
    let mut launcher = Command::new(SELF);
    launcher.arg0(NAME).arg(&user.name).arg(command.get_program()).args(command.get_args());
    launcher.env_clear().envs(env.into_iter().map(|(name, value)| (prefixed(&name), value)));
    if let Some(directory) = command.get_current_dir() {
        launcher.current_dir(directory);
    }
    Ok(launcher)
}

/// Prefixes a variable: the launcher runs as root, and variables that affect the loader, such as `LD_LIBRARY_PATH`, are
/// for the program only.
fn prefixed(name: &OsStr) -> OsString {
    let mut prefixed = OsString::from(PREFIX);
    prefixed.push(name);
    prefixed
}

/// Returns the variables of the program, without their prefix.
fn own_variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.as_bytes().strip_prefix(PREFIX.as_bytes())?;
        Some((OsStr::from_bytes(name).to_owned(), value))
    })
}
