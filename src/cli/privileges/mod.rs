//! Drops root privileges for the user of the configuration, before any thread starts.
//!
//! The owner of the daemon's files is changed first: daemons that ran as root earlier have left files of root.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use brine_system::files::{self, FileError};
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::unistd::{User, fchown, fchownat, geteuid, initgroups, setgid, setuid};

use crate::ui::print_plain_error;

/// The running binary, even if its file was replaced since.
const SELF: &str = "/proc/self/exe";
/// Salt's exit status for an unknown user, EX_NOUSER of `sysexits.h`.
const NO_USER: u8 = 67;
/// The depth to which owners of directories are changed; the daemon creates no directories below it.
const MAX_DEPTH: u32 = 64;

/// Returns the user that a service such as systemd's unit has started the master as, which the configuration need not
/// name: the owner of the master's store. `None` for root and without a store.
pub fn user_of_service(store: &Path) -> Option<String> {
    let owner = fs::symlink_metadata(store).ok().filter(|_| geteuid().is_root())?.uid();
    let user = (owner != 0).then(|| User::from_uid(owner.into()).ok().flatten())?;
    user.map(|user| user.name)
}

/// The errors of changing to the user of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// The user does not exist.
    #[error("running as user '{0}' failed: the user does not exist; create it, or change the option 'user'")]
    NoUser(String),
    /// The process is not root.
    #[error("running as user '{0}' failed: only root can change to another user; start it as root or as '{0}'")]
    NotRoot(String),
    /// A system call failed.
    #[error("running as user '{user}' failed: {source}")]
    Change {
        /// The user.
        user: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A directory cannot be created.
    #[error(transparent)]
    File(#[from] FileError),
    /// Changing the owner of a file failed.
    #[error("changing the owner of {} to '{user}' failed: {source}", path.display())]
    Owner {
        /// The file or directory.
        path: PathBuf,
        /// The user.
        user: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl PrivilegeError {
    /// Prints the error and returns the exit status.
    pub fn exit(&self, tool: &str) -> ExitCode {
        print_plain_error(format_args!("{tool}: {self}"));
        ExitCode::from(if matches!(self, PrivilegeError::NoUser(_)) { NO_USER } else { 1 })
    }
}

/// Prints a [`PrivilegeError`] and returns its exit status; returns other errors.
pub fn report(tool: &str, error: anyhow::Error) -> anyhow::Result<ExitCode> {
    error.downcast::<PrivilegeError>().map(|error| error.exit(tool))
}

/// The files that the user must own.
#[derive(Debug, Default)]
pub struct OwnedPaths<'a> {
    /// Directories, created if they are missing.
    pub directories: Vec<&'a Path>,
    /// Whether the owners of the contents are changed, too.
    pub recursive: bool,
    /// Files and directories that are ignored if they are missing.
    pub existing: Vec<PathBuf>,
    /// The PID file, created here because its directory may belong to root.
    pub pid_file: Option<&'a Path>,
}

/// Returns the name of this process's user. The name of root does not need the user database, which each tool would read.
pub fn user_name() -> Option<String> {
    let user = geteuid();
    if user.is_root() {
        return Some("root".to_owned());
    }
    User::from_uid(user).ok().flatten().map(|user| user.name)
}

/// Returns the user to change to; `None` if the process runs as this user, or no user is configured.
fn target_user(name: Option<&str>) -> Result<Option<User>, PrivilegeError> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    // Avoids reading the user database in the usual case.
    if name == "root" && geteuid().is_root() {
        return Ok(None);
    }
    let user = User::from_name(name).map_err(|error| change_error(name, error))?;
    let user = user.ok_or_else(|| PrivilegeError::NoUser(name.to_owned()))?;
    Ok((user.uid != geteuid()).then_some(user))
}

fn change_error(user: &str, error: impl Into<io::Error>) -> PrivilegeError {
    PrivilegeError::Change { user: user.to_owned(), source: error.into() }
}

/// Executes this program again if its environment is not that of the user that root will change to, because child
/// processes find their configuration through it; otherwise returns. `SHELL` is kept: users of daemons often have no
/// usable one.
pub fn take_environment(name: Option<&str>) -> Result<(), PrivilegeError> {
    let Some(user) = target_user(name)?.filter(|_| geteuid().is_root()) else { return Ok(()) };
    let variables =
        [("HOME", user.dir.as_os_str()), ("USER", OsStr::new(&user.name)), ("LOGNAME", OsStr::new(&user.name))];
    let differs = |(name, value): &(&str, &OsStr)| std::env::var_os(name).is_some_and(|have| have != *value);
    let differing: Vec<_> = variables.into_iter().filter(differs).collect();
    if differing.is_empty() {
        return Ok(());
    }
    let mut words = std::env::args_os();
    let name: OsString = words.next().unwrap_or_else(|| SELF.into());
    Err(change_error(&user.name, Command::new(SELF).arg0(name).args(words).envs(differing).exec()))
}

/// Changes the owner of the files and drops root privileges for the user of the configuration. With `required`, a
/// process of any other user is an error.
pub fn take_user(name: Option<&str>, owned: &OwnedPaths<'_>, required: bool) -> Result<(), PrivilegeError> {
    let Some(user) = target_user(name)? else { return Ok(()) };
    if !geteuid().is_root() {
        return if required { Err(PrivilegeError::NotRoot(user.name)) } else { Ok(()) };
    }
    for directory in &owned.directories {
        if !directory.is_dir() {
            files::create_private_dir(directory)?;
        }
        change_owner(directory, &user, owned.recursive)?;
    }
    for path in &owned.existing {
        if path.is_dir() {
            change_owner(path, &user, owned.recursive)?;
        } else if path.symlink_metadata().is_ok() {
            change_owner_of_file(path, &user).map_err(|error| owner_error(path, &user, error))?;
        }
    }
    if let Some(path) = owned.pid_file {
        make_pid_file(path, &user).map_err(|error| owner_error(path, &user, error))?;
    }
    let name = CString::new(user.name.as_str()).map_err(|error| change_error(&user.name, error))?;
    let changed = initgroups(&name, user.gid).and_then(|()| setgid(user.gid)).and_then(|()| setuid(user.uid));
    changed.map_err(|error| change_error(&user.name, error))?;
    tracing::info!(user = user.name, "running as the user of the configuration");
    Ok(())
}

fn owner_error(path: &Path, user: &User, source: io::Error) -> PrivilegeError {
    PrivilegeError::Owner { path: path.to_owned(), user: user.name.clone(), source }
}

/// Creates an empty PID file of this user, which means that the daemon does not serve yet.
fn make_pid_file(path: &Path, user: &User) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
    Ok(fchown(&file, Some(user.uid), Some(user.gid))?)
}

/// Changes the owner of a directory, and with `recursive` of its contents.
fn change_owner(path: &Path, user: &User, recursive: bool) -> Result<(), PrivilegeError> {
    let opened = OpenOptions::new().read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(path);
    let result =
        opened.and_then(|directory| change_owner_of_open(&directory, user, if recursive { MAX_DEPTH } else { 0 }));
    result.map_err(|error| owner_error(path, user, error))
}

/// Changes owners through file descriptors and never follows links, because the user may replace entries concurrently.
fn change_owner_of_open(directory: &File, user: &User, depth: u32) -> io::Result<()> {
    let status = directory.metadata()?;
    if (status.uid(), status.gid()) != (user.uid.as_raw(), user.gid.as_raw()) {
        fchown(directory, Some(user.uid), Some(user.gid))?;
    }
    if depth == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()))? {
        let name = entry?.file_name();
        match change_owner_of_entry(directory, &name, user, depth - 1) {
            // The entry was removed or replaced.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            result => result?,
        }
    }
    Ok(())
}

fn change_owner_of_entry(directory: &File, name: &OsStr, user: &User, depth: u32) -> io::Result<()> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let entry = openat(directory, name, flags, Mode::empty())?;
    let status = fstat(&entry)?;
    if kind(&status) == SFlag::S_IFDIR {
        let below = openat(&entry, ".", OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        return change_owner_of_open(&File::from(below), user, depth);
    }
    if (status.st_uid, status.st_gid) == (user.uid.as_raw(), user.gid.as_raw()) {
        return Ok(());
    }
    if is_elsewhere(&status) {
        tracing::warn!(name = %name.display(), "a file has several hard links; its owner is not changed");
        return Ok(());
    }
    Ok(fchownat(&entry, "", Some(user.uid), Some(user.gid), AtFlags::AT_EMPTY_PATH)?)
}

/// Changes the owner of a single file, such as a log file, unless it may be another file of root: a link, or a file with
/// several hard links.
fn change_owner_of_file(path: &Path, user: &User) -> io::Result<()> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = open(path, flags, Mode::empty())?;
    let status = fstat(&file)?;
    if (status.st_uid, status.st_gid) == (user.uid.as_raw(), user.gid.as_raw()) {
        return Ok(());
    }
    if kind(&status) != SFlag::S_IFREG || is_elsewhere(&status) {
        tracing::warn!(
            path = %path.display(),
            "it is a link, has several hard links, or is not a regular file; its owner is not changed"
        );
        return Ok(());
    }
    Ok(fchownat(&file, "", Some(user.uid), Some(user.gid), AtFlags::AT_EMPTY_PATH)?)
}

fn kind(status: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(status.st_mode & SFlag::S_IFMT.bits())
}

/// Returns whether a file may have a hard link outside of the daemon's directories.
fn is_elsewhere(status: &FileStat) -> bool {
    kind(status) == SFlag::S_IFREG && status.st_nlink > 1
}

#[cfg(test)]
mod tests;
