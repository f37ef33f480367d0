//! The directories and key files of a daemon: that they exist, and who may use them.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Gid, Group, Uid, User};

use crate::daemon::Daemon;
use crate::finding::{Finding, Repair, Role, quoted};
use crate::installation::{Directory, Installation};
use crate::kinds;

/// The directories of keys below the `pki_dir` of a master.
pub const KEY_DIRECTORIES: [&str; 4] = ["minions", "minions_pre", "minions_rejected", "minions_denied"];

/// Returns the name of a user, or its number.
pub fn user_name(uid: u32) -> String {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}

impl Finding {
    /// Adds the mend that gives a file to the user of the daemon.
    #[must_use]
    pub(crate) fn owned_by(self, path: &Path, daemon: &Daemon) -> Self {
        let Some(owner) = daemon.owner else { return self };
        let command = format!("chown {} {}", owner_name(owner), quoted(path));
        match daemon.sure_owner() {
            Some((uid, gid)) => self.repaired_by(Repair::Owner(path.to_owned(), uid, gid)).mended_by(command),
            None => self.mended_by(command),
        }
    }
}

/// Returns `user:group` for `chown`.
fn owner_name((uid, gid): (u32, u32)) -> String {
    let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten().map_or_else(|| gid.to_string(), |group| group.name);
    format!("{}:{group}", user_name(uid))
}

/// Examines the directories and the files of keys.
pub fn examine(installation: &Installation, daemon: &Daemon) -> Vec<Finding> {
    let role = installation.role;
    let was_started = daemon.is_running() || installation.directories.iter().any(|one| one.path.is_dir());
    let mut findings = Vec::new();
    for directory in &installation.directories {
        findings.extend(of_directory(role, directory, daemon, was_started));
        findings.extend(untrusted(installation, &directory.path, daemon));
    }
    if role == Role::Master {
        for name in KEY_DIRECTORIES {
            let path = installation.pki_dir.join(name);
            if path.is_dir() {
                let directory = Directory { option: "pki_dir", path, forbidden: 0o022 };
                findings.extend(of_directory(role, &directory, daemon, true));
            }
        }
    }
    for key in &installation.keys {
        match fs::symlink_metadata(&key.path) {
            Ok(status) if status.is_file() => findings.extend(of_key(role, &key.path, key.is_private, &status, daemon)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => findings.push(not_seen(role, &key.path)),
            _ => {}
        }
    }
    findings.extend(log(installation, daemon));
    findings
}

/// Returns the finding that a file could not be examined.
pub fn not_seen(role: Role, path: &Path) -> Finding {
    Finding::new(&kinds::NOT_SEEN, role, format!("{} could not be read", quoted(path)))
        .at(path.display())
        .because("this user may not read it")
        .mended_by("sudo brine doctor   # with the same options")
}

fn of_directory(role: Role, directory: &Directory, daemon: &Daemon, was_started: bool) -> Vec<Finding> {
    let Directory { option, path, forbidden } = directory;
    let place = format!("{} ({option})", path.display());
    let status = match fs::metadata(path) {
        Ok(status) => status,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return vec![not_seen(role, path)],
        Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            let missing = Finding::new(&kinds::DIRECTORY_MISSING, role, format!("{} does not exist", quoted(path)))
                .at(place)
                .because("something has removed it")
                .repaired_by(Repair::Directory(path.clone(), 0o700, daemon.sure_owner()));
            return if was_started { vec![missing] } else { Vec::new() };
        }
        Err(error) => {
            let invalid = Finding::new(&kinds::DIRECTORY_INVALID, role, format!("{} is not usable", quoted(path)));
            let aside = format!("mv {0} {0}.old", quoted(path));
            return vec![invalid.at(place).because(error).mended_by(aside)];
        }
    };
    if !status.is_dir() {
        let invalid = Finding::new(&kinds::DIRECTORY_INVALID, role, format!("{} is not a directory", quoted(path)));
        let aside = format!("mv {0} {0}.old", quoted(path));
        return vec![invalid.at(place).because("expected a directory, got a file").mended_by(aside)];
    }
    let mut findings = Vec::new();
    if let Some(owner) = daemon.owner.filter(|owner| owner.0 != status.uid()) {
        findings.push(
            Finding::new(
                &kinds::DIRECTORY_OWNER,
                role,
                format!("{} belongs to {}", quoted(path), user_name(status.uid())),
            )
            .at(&place)
            .because(format!("the daemon runs as {}", user_name(owner.0)))
            .owned_by(path, daemon),
        );
    }
    let mode = status.mode() & 0o7777;
    let expected = mode & !forbidden | 0o700;
    if expected != mode {
        let why = if mode & 0o700 == 0o700 { "other users may use it" } else { "its owner may not use it" };
        findings.push(
            Finding::new(&kinds::DIRECTORY_MODE, role, format!("{} has the mode {mode:04o}", quoted(path)))
                .at(&place)
                .because(format!("{why}: expected {expected:04o}"))
                .repaired_by(Repair::Mode(path.clone(), expected)),
        );
    }
    findings
}

/// Finds a directory on the way that another user can write, and so exchange what is below.
fn untrusted(installation: &Installation, path: &Path, daemon: &Daemon) -> Option<Finding> {
    let role = installation.role;
    let path = fs::canonicalize(path).ok()?;
    // The user of a master on this host commands this minion anyway, and owns the directory above both caches.
    let masters = fs::metadata(installation.config_dir.join("pki/master")).ok().filter(|_| role == Role::Minion);
    let owner = daemon.owner?.0;
    let trusted = [0, owner, masters.map_or(owner, |status| status.uid())];
    let mut child = fs::metadata(&path).ok()?;
    for ancestor in path.ancestors().skip(1) {
        let status = fs::metadata(ancestor).ok()?;
        let mode = status.mode();
        let is_writable = mode & 0o002 != 0 || mode & 0o020 != 0 && status.gid() != 0 && !is_private(&status);
        // In a directory such as /tmp, others cannot rename what is not theirs.
        let is_sticky = mode & 0o1000 != 0 && trusted.contains(&child.uid());
        if !trusted.contains(&status.uid()) || is_writable && !is_sticky {
            let mend = if trusted.contains(&status.uid()) {
                format!("chmod go-w {}", quoted(ancestor))
            } else {
                format!("chown {} {}", user_name(owner), quoted(ancestor))
            };
            return Some(
                Finding::new(&kinds::DIRECTORY_UNTRUSTED, role, format!("others can exchange {}", quoted(&path)))
                    .at(ancestor.display())
                    .because(format!(
                        "{} belongs to {} and has the mode {:04o}",
                        ancestor.display(),
                        user_name(status.uid()),
                        mode & 0o7777
                    ))
                    .mended_by(mend),
            );
        }
        child = status;
    }
    None
}

/// Whether the group of a directory is that of its owner alone, as distributions make them.
fn is_private(status: &Metadata) -> bool {
    let user = User::from_uid(Uid::from_raw(status.uid())).ok().flatten();
    let group = Group::from_gid(Gid::from_raw(status.gid())).ok().flatten();
    user.zip(group)
        .is_some_and(|(user, group)| user.name == group.name && group.mem.iter().all(|name| *name == user.name))
}

fn of_key(role: Role, path: &Path, is_private: bool, status: &Metadata, daemon: &Daemon) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mode = status.mode() & 0o7777;
    let (expected, why) = match (is_private, mode) {
        (true, mode) if mode & 0o077 != 0 => (0o400, "other users may use this private key"),
        (true, mode) if mode & 0o400 == 0 => (0o400, "its owner may not read it"),
        (false, mode) if mode & 0o022 != 0 => (mode & !0o022 | 0o400, "other users may exchange this key"),
        (false, mode) if mode & 0o400 == 0 => (mode | 0o400, "its owner may not read it"),
        _ => (mode, ""),
    };
    if expected != mode {
        findings.push(
            Finding::new(&kinds::KEY_MODE, role, format!("{} has the mode {mode:04o}", quoted(path)))
                .at(path.display())
                .because(format!("{why}: expected {expected:04o}"))
                .repaired_by(Repair::Mode(path.to_owned(), expected)),
        );
    }
    let is_wrong = |owner: &(u32, u32)| owner.0 != status.uid() && (is_private || status.uid() != 0);
    if let Some(owner) = daemon.owner.filter(is_wrong) {
        findings.push(
            Finding::new(&kinds::KEY_OWNER, role, format!("{} belongs to {}", quoted(path), user_name(status.uid())))
                .at(path.display())
                .because(format!("the daemon runs as {}", user_name(owner.0)))
                .owned_by(path, daemon),
        );
    }
    findings
}

/// Examines the owner of the log.
pub fn log(installation: &Installation, daemon: &Daemon) -> Option<Finding> {
    let path = &installation.log_file;
    let status = fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    // Root writes every log.
    let owner = daemon.owner.filter(|owner| owner.0 != 0 && owner.0 != status.uid() && status.mode() & 0o022 == 0)?;
    Some(
        Finding::new(
            &kinds::DIRECTORY_OWNER,
            installation.role,
            format!("the log {} belongs to {}", quoted(path), user_name(status.uid())),
        )
        .at(format!("{} (log_file)", path.display()))
        .because(format!("the daemon runs as {} and cannot write it", user_name(owner.0)))
        .owned_by(path, daemon),
    )
}
