//! The launcher of `runas`: this binary, started under another name, takes the identity of a user with all of its
//! groups and becomes the program.
//!
//! The standard library can set the user and one group of a child and then clears the supplementary groups; more is
//! possible only with unsafe code between fork and exec.

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

/// The name under which the binary is the launcher.
const NAME: &str = "brine-runas";
/// The running binary, also when the file was replaced since.
const SELF: &str = "/proc/self/exe";
/// What the names of the program's variables begin with on their way through the launcher.
const PREFIX: &str = "BRINE_RUNAS_";
/// Where the system looks for programs without `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// The exit status of shells for a program that cannot be run.
const CANNOT_RUN: u8 = 126;

/// Whether this process is the binary that [`intercept`]s, and not a test or another program with this library.
static AVAILABLE: AtomicBool = AtomicBool::new(false);

/// Becomes the program if these words ask for the launcher; returns the exit status if that fails. The binary calls it
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

/// Returns a command that runs this one as another user. `clean_env` says whether it sees only its own variables.
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
    // The launcher starts in any case: a missing program would show in its exit status alone.
    let path = env.get(OsStr::new("PATH")).cloned().unwrap_or_else(|| DEFAULT_PATH.into());
    processes::find_in(Path::new(command.get_program()), &path)
        .ok_or_else(|| io::Error::from_raw_os_error(nix::Error::ENOENT as i32))?;
    let mut launcher = Command::new(SELF);
    launcher.arg0(NAME).arg(&user.name).arg(command.get_program()).args(command.get_args());
    launcher.env_clear().envs(env.into_iter().map(|(name, value)| (prefixed(&name), value)));
    if let Some(folder) = command.get_current_dir() {
        launcher.current_dir(folder);
    }
    Ok(launcher)
}

/// The launcher runs as root: variables that the loader reads, such as `LD_LIBRARY_PATH`, are for the program alone.
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
