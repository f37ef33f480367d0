//! Locks on single ids, among the threads of this process and other processes: the daemon and `salt-key` move the same
//! files, and what looks for a key in one directory after the other must not miss one that moves.
//!
//! A lock is a byte of a file in `pki_dir`, locked for this open file. Salt's own programs do not know it.

use std::cell::Cell;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use brine_ids::MinionId;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

/// The name of the file below `pki_dir`.
const FILE: &str = ".keys.lock";
/// The number of locks: each is shared by a group of ids.
const GROUPS: usize = 64;

/// The locks of all ids.
pub(super) struct Locks {
    /// `None` if it cannot be opened: then only the threads of this process exclude each other.
    file: Option<File>,
    /// For each group the number of times that the thread which has it has locked it.
    groups: [ReentrantMutex<Cell<u32>>; GROUPS],
}

/// An id that no other thread or process changes. The thread that holds it may lock the id again.
pub struct Locked<'a> {
    file: Option<&'a File>,
    group: usize,
    depth: ReentrantMutexGuard<'a, Cell<u32>>,
}

impl Locks {
    /// Opens the file below `pki_dir`.
    pub fn open(pki_dir: &Path) -> Self {
        let path = pki_dir.join(FILE);
        let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        if let Err(error) = &file {
            tracing::warn!(path = %path.display(), %error, "opening the lock of the keys failed: let one program change them");
        }
        Locks { file: file.ok(), groups: std::array::from_fn(|_| ReentrantMutex::new(Cell::new(0))) }
    }

    /// Locks an id. Waits while another thread or process has it.
    pub fn lock(&self, id: &MinionId) -> Locked<'_> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let group = hasher.finish() as usize % GROUPS;
        let depth = self.groups[group].lock();
        if depth.get() == 0 {
            set(self.file.as_ref(), group, libc::F_WRLCK);
        }
        depth.set(depth.get() + 1);
        Locked { file: self.file.as_ref(), group, depth }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.depth.set(self.depth.get() - 1);
        if self.depth.get() == 0 {
            set(self.file, self.group, libc::F_UNLCK);
        }
    }
}

/// Locks or unlocks the byte of a group.
fn set(file: Option<&File>, group: usize, kind: i32) {
    let Some(file) = file else { return };
    let range = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: group as libc::off_t,
        l_len: 1,
        l_pid: 0,
    };
    while let Err(error) = fcntl(file, FcntlArg::F_OFD_SETLKW(&range)) {
        if error != nix::errno::Errno::EINTR {
            tracing::warn!(%error, "locking a key failed: let one program change them");
            return;
        }
    }
}
