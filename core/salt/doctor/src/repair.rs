//! The mends of `--fix`. Each is made by `user_files`, which follows no link of another user to what that user does not
//! own, and refuses files with several names.

use std::io::{Error, Result};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use brine_system::files::{Attributes, Links};
use brine_system::user_files;

use crate::finding::Repair;
use crate::processes::Process;

/// Returns an error if somebody else can change this file or directory, or exchange it: what a configuration says is
/// then not to be trusted by root.
///
/// # Errors
/// It can be changed by another user.
pub fn trusted(path: &Path) -> Result<()> {
    let path = std::path::absolute(path)?;
    if !user_files::is_trusted(&path)? {
        return Err(Error::other(format!("another user can change {}", path.display())));
    }
    let status = std::fs::metadata(&path)?;
    let own = nix::unistd::geteuid().as_raw();
    let is_ours = status.uid() == 0 || status.uid() == own;
    if is_ours && status.mode() & 0o002 == 0 {
        return Ok(());
    }
    Err(Error::other(format!("another user can change {}", path.display())))
}

impl Repair {
    /// Makes the mend.
    ///
    /// # Errors
    /// The operating system refuses it, or the reason for it is gone.
    pub fn apply(&self) -> Result<()> {
        match self {
            Repair::Mode(path, mode) => user_files::set_mode(path, *mode, Links::Follow),
            Repair::Owner(path, uid, gid) => user_files::set_owner(path, Some(*uid), Some(*gid), Links::Follow),
            Repair::Directory(path, mode, owner) => {
                if let Some(parent) = path.parent() {
                    user_files::create_dir_all(parent)?;
                }
                let (uid, gid) = owner.unzip();
                user_files::create_dir_all_with(path, Attributes { uid, gid, mode: Some(*mode) }).map(drop)
            }
            Repair::PidFile(path) => {
                let text = user_files::read_to_string(path)?;
                let pid: u32 = text.trim().parse().map_err(|_| Error::other("it holds no PID any more"))?;
                let is_daemon =
                    |process: Process| ["salt-master", "salt-minion"].iter().any(|tool| process.is_daemon(tool));
                if Process::of_pid(pid).is_some_and(is_daemon) {
                    return Err(Error::other("its process runs"));
                }
                user_files::remove_file(path)
            }
            Repair::Socket(path) => {
                let is_socket = std::fs::symlink_metadata(path)?.file_type().is_socket();
                if !is_socket || UnixStream::connect(path).is_ok() {
                    return Err(Error::other("it is in use"));
                }
                user_files::remove_file(path)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn mends_are_made_once_and_only_while_their_reason_lasts() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let mode = |name: &str| std::fs::metadata(path(name)).unwrap().permissions().mode() & 0o7777;
        std::fs::write(path("key"), "").unwrap();
        Repair::Mode(path("key"), 0o400).apply().unwrap();
        assert_eq!(mode("key"), 0o400);
        Repair::Directory(path("a/b"), 0o700, None).apply().unwrap();
        assert_eq!(mode("a/b"), 0o700);
        std::fs::write(path("pid"), "4194305").unwrap();
        Repair::PidFile(path("pid")).apply().unwrap();
        assert!(!path("pid").exists());
        std::fs::write(path("pid"), "important").unwrap();
        Repair::PidFile(path("pid")).apply().unwrap_err();
        let socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        Repair::Socket(path("socket")).apply().unwrap_err();
        drop(socket);
        Repair::Socket(path("socket")).apply().unwrap();
        std::fs::write(path("file"), "").unwrap();
        Repair::Socket(path("file")).apply().unwrap_err();
        assert!(path("file").exists() && !path("socket").exists());
    }

    #[test]
    fn links_of_other_users_lead_root_nowhere() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let (secret, theirs) = (directory.path().join("secret"), directory.path().join("theirs"));
        std::fs::write(&secret, "").unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).unwrap();
        let link = theirs.join("master.pem");
        symlink(&secret, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
        let before = std::fs::metadata(&secret).unwrap();
        Repair::Mode(link.clone(), 0o444).apply().unwrap_err();
        Repair::Owner(link, 65534, 65534).apply().unwrap_err();
        std::fs::hard_link(&secret, theirs.join("hard")).unwrap();
        Repair::Owner(theirs.join("hard"), 65534, 65534).apply().unwrap_err();
        let after = std::fs::metadata(&secret).unwrap();
        assert_eq!((before.uid(), before.mode()), (after.uid(), after.mode()));
        assert!(trusted(&theirs).is_err() && trusted(&theirs.join("x")).is_err());
        trusted(directory.path()).unwrap();
    }
}
