//! Running as the user of the configuration: who starts a daemon as root gives up root before any thread starts.
//!
//! The user's files are changed first: Salt's daemons and those of a root without `user` leave files of root.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use brine_system::files::{self, FileError};
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};
use nix::unistd::{User, fchown, fchownat, geteuid, initgroups, setgid, setuid};

use crate::ui::print_plain_error;

/// The running binary, also when the file was replaced since.
const SELF: &str = "/proc/self/exe";
/// Salt's exit status for a user that does not exist: that of `sysexits.h`.
const NO_USER: u8 = 67;
/// How deep directories are changed: deeper ones are not the daemon's.
const MAX_DEPTH: u32 = 64;

/// Why a tool does not run as the user of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// There is no such user.
    #[error("running as user '{0}' failed: there is no such user: create it, or change the option 'user'")]
    NoUser(String),
    /// The process may not change its user.
    #[error("running as user '{0}' failed: only root can change to another user: start it as root or as '{0}'")]
    NotRoot(String),
    /// The system refuses.
    #[error("running as user '{user}' failed: {source}")]
    Change {
        /// The user.
        user: String,
        /// What the system says.
        source: io::Error,
    },
    /// A directory cannot be created.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file cannot be given to the user.
    #[error("changing the owner of {} to '{user}' failed: {source}", path.display())]
    Owner {
        /// The file or directory.
        path: PathBuf,
        /// The user.
        user: String,
        /// What the system says.
        source: io::Error,
    },
}

impl PrivilegeError {
    /// Shows the error and returns the exit status.
    pub fn exit(&self, tool: &str) -> ExitCode {
        print_plain_error(format_args!("{tool}: {self}"));
        ExitCode::from(if matches!(self, PrivilegeError::NoUser(_)) { NO_USER } else { 1 })
    }
}

/// Shows an error about the user of the configuration and returns the exit status. Other errors are the caller's.
pub fn shown(tool: &str, error: anyhow::Error) -> anyhow::Result<ExitCode> {
    error.downcast::<PrivilegeError>().map(|error| error.exit(tool))
}

/// What the user must own.
#[derive(Debug, Default)]
pub struct Owned<'a> {
    /// Directories that are created.
    pub directories: Vec<&'a Path>,
    /// Whether what is in the directories is the user's too.
    pub recursive: bool,
    /// Files and directories that stay as they are if they do not exist.
    pub existing: Vec<PathBuf>,
    /// The pid file, which is created: its directory may be root's alone.
    pub pid_file: Option<&'a Path>,
}

/// The user to change to; nothing if the process is this user, or no user is configured.
fn other(name: Option<&str>) -> Result<Option<User>, PrivilegeError> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let user = User::from_name(name).map_err(|error| change(name, error))?;
    let user = user.ok_or_else(|| PrivilegeError::NoUser(name.to_owned()))?;
    Ok((user.uid != geteuid()).then_some(user))
}

fn change(user: &str, error: impl Into<io::Error>) -> PrivilegeError {
    PrivilegeError::Change { user: user.to_owned(), source: error.into() }
}

/// Starts this program anew if its environment is not that of the user whom root will change to: child processes look
/// for their configuration by it. Returns if it is. Users of daemons have no shell that could run commands: it stays.
pub fn take_environment(name: Option<&str>) -> Result<(), PrivilegeError> {
    let Some(user) = other(name)?.filter(|_| geteuid().is_root()) else { return Ok(()) };
    let wanted =
        [("HOME", user.dir.as_os_str()), ("USER", OsStr::new(&user.name)), ("LOGNAME", OsStr::new(&user.name))];
    let differs = |(name, value): &(&str, &OsStr)| std::env::var_os(name).is_some_and(|have| have != *value);
    let differing: Vec<_> = wanted.into_iter().filter(differs).collect();
    if differing.is_empty() {
        return Ok(());
    }
    let mut words = std::env::args_os();
    let name: OsString = words.next().unwrap_or_else(|| SELF.into());
    Err(change(&user.name, Command::new(SELF).arg0(name).args(words).envs(differing).exec()))
}

/// Gives up root for the user of the configuration, whose the files become first. Other users than root must be that
/// user if `required`.
pub fn take_user(name: Option<&str>, owned: &Owned<'_>, required: bool) -> Result<(), PrivilegeError> {
    let Some(user) = other(name)? else { return Ok(()) };
    if !geteuid().is_root() {
        return if required { Err(PrivilegeError::NotRoot(user.name)) } else { Ok(()) };
    }
    for directory in &owned.directories {
        if !directory.is_dir() {
            files::create_private_dir(directory)?;
        }
        give(directory, &user, owned.recursive)?;
    }
    for path in &owned.existing {
        if path.is_dir() {
            give(path, &user, owned.recursive)?;
        } else if path.exists() {
            lchown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
                .map_err(|error| owner(path, &user, error))?;
        }
    }
    if let Some(path) = owned.pid_file {
        make_pid_file(path, &user).map_err(|error| owner(path, &user, error))?;
    }
    let name = CString::new(user.name.as_str()).map_err(|error| change(&user.name, error))?;
    let changed = initgroups(&name, user.gid).and_then(|()| setgid(user.gid)).and_then(|()| setuid(user.uid));
    changed.map_err(|error| change(&user.name, error))?;
    tracing::info!(user = user.name, "running as the user of the configuration");
    Ok(())
}

fn owner(path: &Path, user: &User, source: io::Error) -> PrivilegeError {
    PrivilegeError::Owner { path: path.to_owned(), user: user.name.clone(), source }
}

/// Creates an empty pid file of this user, which says that the daemon does not serve yet.
fn make_pid_file(path: &Path, user: &User) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
    Ok(fchown(&file, Some(user.uid), Some(user.gid))?)
}

/// Gives a directory to a user, with all that is in it if `recursive`.
fn give(path: &Path, user: &User, recursive: bool) -> Result<(), PrivilegeError> {
    let opened = OpenOptions::new().read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(path);
    let given = opened.and_then(|directory| give_opened(&directory, user, if recursive { MAX_DEPTH } else { 0 }));
    given.map_err(|error| owner(path, user, error))
}

/// Goes by opened directories and never through links: the user may change names meanwhile.
fn give_opened(directory: &File, user: &User, depth: u32) -> io::Result<()> {
    let status = directory.metadata()?;
    if (status.uid(), status.gid()) != (user.uid.as_raw(), user.gid.as_raw()) {
        fchown(directory, Some(user.uid), Some(user.gid))?;
    }
    if depth == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()))? {
        let name = entry?.file_name();
        match give_entry(directory, &name, user, depth - 1) {
            // It is gone, or something else by now.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            done => done?,
        }
    }
    Ok(())
}

fn give_entry(directory: &File, name: &OsStr, user: &User, depth: u32) -> io::Result<()> {
    let status = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    let kind = SFlag::from_bits_truncate(status.st_mode & SFlag::S_IFMT.bits());
    if kind == SFlag::S_IFDIR {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let below = openat(directory, name, flags, Mode::empty())?;
        return give_opened(&File::from(below), user, depth);
    }
    if (status.st_uid, status.st_gid) == (user.uid.as_raw(), user.gid.as_raw()) {
        return Ok(());
    }
    if is_elsewhere(kind, &status) {
        tracing::warn!(name = %name.display(), "a file has other names, perhaps elsewhere: its owner is not changed");
        return Ok(());
    }
    Ok(fchownat(directory, name, Some(user.uid), Some(user.gid), AtFlags::AT_SYMLINK_NOFOLLOW)?)
}

/// Whether a file may have a name in a directory that is not the daemon's.
fn is_elsewhere(kind: SFlag, status: &FileStat) -> bool {
    kind == SFlag::S_IFREG && status.st_nlink > 1
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn nobody() -> Option<User> {
        User::from_name("nobody").unwrap().filter(|_| geteuid().is_root())
    }

    #[test]
    fn users_are_found_or_refused() {
        let own = User::from_uid(geteuid()).unwrap().unwrap();
        for name in [None, Some(""), Some(own.name.as_str())] {
            assert!(other(name).unwrap().is_none(), "{name:?}");
            take_user(name, &Owned::default(), true).unwrap();
        }
        let error = other(Some("no-such-user")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "running as user 'no-such-user' failed: there is no such user: create it, or change the option 'user'"
        );
    }

    #[test]
    fn directories_are_given_without_following_links() {
        // The rest of these tests is root's.
        let Some(nobody) = nobody() else { return };
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        fs::create_dir_all(own.join("deep/er")).unwrap();
        fs::create_dir(&other).unwrap();
        for path in [own.join("a"), own.join("deep/er/b"), other.join("c"), other.join("d")] {
            fs::write(path, "x").unwrap();
        }
        symlink(&other, own.join("link")).unwrap();
        symlink(other.join("c"), own.join("deep/file")).unwrap();
        fs::hard_link(other.join("d"), own.join("hard")).unwrap();
        let uid = |path: PathBuf| fs::symlink_metadata(path).unwrap().uid();
        give(&own, &nobody, false).unwrap();
        assert_eq!((uid(own.clone()), uid(own.join("a"))), (nobody.uid.as_raw(), 0));
        give(&own, &nobody, true).unwrap();
        for name in ["a", "deep", "deep/er", "deep/er/b", "link", "deep/file"] {
            assert_eq!(uid(own.join(name)), nobody.uid.as_raw(), "{name}");
        }
        for path in [other.clone(), other.join("c"), other.join("d"), folder.path().to_owned()] {
            assert_eq!(uid(path.clone()), 0, "{}", path.display());
        }
    }
}
