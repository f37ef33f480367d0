//! The file systems that a daemon writes: space, inodes, and whether they are writable; the store of a master.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_system::user_files;
use nix::sys::statvfs::{FsFlags, statvfs};

use crate::daemon::Daemon;
use crate::finding::{Finding, quoted};
use crate::installation::Installation;
use crate::kinds::{self, Kind};
use crate::logs;

/// The free space below which a file system is full, and nearly full, in bytes.
const FULL: u64 = 16 << 20;
const LOW: u64 = 1 << 30;
/// The first bytes of a store.
const STORE_MAGIC: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";
/// The size that a store has besides its journal, in bytes.
const STORE_REST: u64 = 512 << 20;

/// What a file system has.
#[derive(Debug, Clone, Copy)]
struct Space {
    /// The bytes in all, and those that are free.
    bytes: (u64, u64),
    /// The inodes in all, and those that are free; 0 in all for a file system without a limit.
    inodes: (u64, u64),
    is_read_only: bool,
}

impl Space {
    fn of(path: &Path) -> Option<Self> {
        let status = statvfs(path).ok()?;
        let block = status.fragment_size();
        Some(Space {
            bytes: (status.blocks() * block, status.blocks_available() * block),
            inodes: (status.files(), status.files_available()),
            is_read_only: status.flags().contains(FsFlags::ST_RDONLY),
        })
    }

    /// Returns what is wrong with it.
    fn judge(self) -> Vec<(&'static Kind, String)> {
        let mut findings = Vec::new();
        if self.is_read_only {
            findings.push((&kinds::DISK_READ_ONLY, "the file system is mounted read-only".to_owned()));
            return findings;
        }
        let percent = |(all, free): (u64, u64)| (free * 100).checked_div(all).unwrap_or(100);
        let mib = |bytes: u64| bytes >> 20;
        let (all, free) = self.bytes;
        let message = format!("{} MiB of {} MiB are free", mib(free), mib(all));
        // A small file system may be small on purpose.
        if all > 0 && (free == 0 || free < FULL && percent(self.bytes) < 5) {
            findings.push((&kinds::DISK_FULL, message));
        } else if all > 0 && free < LOW && percent(self.bytes) < 5 {
            findings.push((&kinds::DISK_LOW, message));
        }
        let (all, free) = self.inodes;
        let message = format!("{free} of {all} inodes are free");
        if all > 0 && free < 100.min(all / 100 + 1) {
            findings.push((&kinds::INODES_FULL, message));
        } else if all > 0 && percent(self.inodes) < 5 {
            findings.push((&kinds::INODES_LOW, message));
        }
        findings
    }
}

/// Examines the file systems of a daemon's directories and log.
pub fn examine(installation: &Installation) -> Vec<Finding> {
    let mut paths: Vec<PathBuf> = installation.directories.iter().map(|one| one.path.clone()).collect();
    paths.extend(installation.log_file.parent().map(Path::to_owned));
    let mut devices = BTreeSet::new();
    let mut findings = Vec::new();
    for path in &paths {
        let Some(existing) = path.ancestors().find(|path| path.exists()) else { continue };
        let is_new = std::fs::metadata(existing).is_ok_and(|status| devices.insert(status.dev()));
        let Some(space) = Space::of(existing).filter(|_| is_new) else { continue };
        for (kind, what) in space.judge() {
            let mend = match kind.name {
                "disk-read-only" => format!("mount -o remount,rw $(findmnt -no TARGET -T {})", quoted(existing)),
                "inodes-full" | "inodes-low" => format!("du --inodes -xS {} | sort -n | tail", quoted(existing)),
                _ => format!("du -xh {} | sort -h | tail", quoted(existing)),
            };
            findings.push(
                Finding::new(kind, installation.role, what)
                    .at(existing.display())
                    .because("the daemon writes there: keys, caches, the store, logs")
                    .mended_by(mend),
            );
        }
    }
    findings
}

/// Examines the store of a master.
pub fn store(installation: &Installation, daemon: &Daemon) -> Vec<Finding> {
    let Some(path) = &installation.store else { return Vec::new() };
    let role = installation.role;
    let mut findings = Vec::new();
    let mut damaged = path.as_os_str().to_owned();
    damaged.push(".damaged");
    let damaged = PathBuf::from(damaged);
    if damaged.exists() {
        findings.push(
            Finding::new(&kinds::STORE_DAMAGED, role, "the store was damaged and has been replaced by an empty one")
                .at(damaged.display())
                .because("the disk lost or changed data: see dmesg and `smartctl -H`")
                .mended_by(format!("rm {}*   # once its events and jobs are not needed any more", quoted(&damaged))),
        );
    }
    let Ok(status) = std::fs::metadata(path) else { return findings };
    if !daemon.is_running() && status.len() > 0 {
        let mut start = [0; STORE_MAGIC.len()];
        let read = user_files::open(path).and_then(|mut file| file.read_exact(&mut start));
        if read.is_ok() && start != STORE_MAGIC
            || read.is_err_and(|error| error.kind() == std::io::ErrorKind::UnexpectedEof)
        {
            findings.push(
                Finding::new(&kinds::STORE_DAMAGED, role, format!("{} is not a store", quoted(path)))
                    .at(path.display())
                    .because("its first bytes are not those of a store; the next start moves it aside and begins anew")
                    .mended_by(format!("mv {0} {0}.damaged   # or restore it from a backup", quoted(path))),
            );
        }
    }
    if status.len() > 2 * installation.journal_size + STORE_REST {
        findings.push(
            Finding::new(&kinds::STORE_LARGE, role, format!("the store has {} MiB", status.len() >> 20))
                .at(path.display())
                .because(format!("event_journal_size allows {} MiB of events", installation.journal_size >> 20))
                .mended_by("# lower keep_jobs and event_journal_size; the master returns free space every ten minutes"),
        );
    }
    if let Some(line) = logs::last_with(&installation.log_file, "store repaired after an unclean stop") {
        findings.push(
            Finding::new(&kinds::STORE_REPAIRED, role, "the store was repaired after an unclean stop")
                .at(path.display())
                .because(line),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_and_inodes_have_limits() {
        const GIB: u64 = 1 << 30;
        for (bytes, inodes, is_read_only, expected) in [
            ((100 * GIB, 50 * GIB), (1_000_000, 500_000), false, &[][..]),
            ((100 * GIB, 0), (1_000_000, 500_000), false, &["disk-full"]),
            ((100 * GIB, 1 << 20), (1_000_000, 500_000), false, &["disk-full"]),
            ((100 * GIB, GIB / 2), (1_000_000, 500_000), false, &["disk-low"]),
            ((100 * GIB, 50 * GIB), (1_000_000, 0), false, &["inodes-full"]),
            ((100 * GIB, 50 * GIB), (1_000_000, 20_000), false, &["inodes-low"]),
            ((100 * GIB, 50 * GIB), (0, 0), false, &[]),
            ((10 << 20, 8 << 20), (1000, 900), false, &[]),
            ((10 << 20, 0), (1000, 900), false, &["disk-full"]),
            ((100 * GIB, 0), (0, 0), true, &["disk-read-only"]),
        ] {
            let findings = Space { bytes, inodes, is_read_only }.judge();
            let names: Vec<&str> = findings.iter().map(|(kind, _)| kind.name).collect();
            assert_eq!(names, expected, "{bytes:?} {inodes:?}");
        }
    }
}
