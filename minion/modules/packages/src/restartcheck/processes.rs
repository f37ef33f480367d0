//! Finds processes that use deleted files, such as former versions of upgraded libraries, in `/proc`.

use std::fs;
use std::path::Path;

/// The mark of the kernel for a deleted file.
pub const DELETED: &str = " (deleted)";

/// The length of names of processes from which on the kernel cuts them.
const NAME_LIMIT: usize = 15;

/// Places of files that come and go without an upgrade: logs, temporary files, caches, shared memory.
const IGNORED: [&str; 22] = [
    "/[aio]",
    "/SYSV",
    "/dev/pts/",
    "/dev/shm/",
    "/dev/zero",
    "/drm",
    "/home/",
    "/i915",
    "/memfd:",
    "/run/",
    "/tmp/",
    "/usr/lib/locale/",
    "/var/cache/fontconfig/",
    "/var/lib/nagios3/spool/",
    "/var/lib/postgresql/",
    "/var/lib/vdr/",
    "/var/local/log/",
    "/var/local/run/",
    "/var/local/tmp/",
    "/var/log/",
    "/var/run/",
    "/var/tmp/",
];

/// A process that uses deleted files.
#[derive(Debug, PartialEq, Eq)]
pub struct Process {
    /// Its PID.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The path of its program, with [`DELETED`] if that was replaced.
    pub executable: String,
    /// The deleted files.
    pub files: Vec<String>,
}

/// Returns the processes below a directory that use deleted files, by PID. Processes that end meanwhile, and those of
/// other users without the permission to look at them, are left out.
pub fn with_deleted_files(root: &Path) -> Vec<Process> {
    let entries = fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids.into_iter().filter_map(|pid| process(root, pid)).collect()
}

fn process(root: &Path, pid: u32) -> Option<Process> {
    let directory = root.join(format!("proc/{pid}"));
    let files = deleted(&String::from_utf8_lossy(&fs::read(directory.join("maps")).ok()?));
    if files.is_empty() {
        return None;
    }
    let executable = fs::read_link(directory.join("exe")).ok()?.to_string_lossy().into_owned();
    let text = |name: &str| fs::read(directory.join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let mut name = text("comm").ok()?.trim_end_matches('\n').to_owned();
    if name.len() >= NAME_LIMIT {
        let line = text("cmdline").unwrap_or_default();
        let full = line.split('\0').next().and_then(|program| program.rsplit('/').next());
        if let Some(full) = full.filter(|full| full.starts_with(&name)) {
            full.clone_into(&mut name);
        }
    }
    Some(Process { pid, name, executable, files })
}

/// Returns the deleted files among the mappings of a process.
fn deleted(maps: &str) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for line in maps.lines() {
        // Addresses, permissions, offset, device, inode, and the path, which may contain blanks.
        let mut rest = line;
        for _ in 0..5 {
            rest = rest.trim_start().split_once(' ').map_or("", |(_, rest)| rest);
        }
        let Some(path) = without_mark(rest.trim_start()) else { continue };
        let is_ignored = IGNORED.iter().any(|start| path.starts_with(start)) || path.contains("icon-theme.cache");
        if !is_ignored && !files.iter().any(|file| file == path) {
            files.push(path.to_owned());
        }
    }
    files
}

/// Returns the path of a deleted file without its mark.
fn without_mark(path: &str) -> Option<&str> {
    if let Some(path) = path.strip_suffix(DELETED) {
        return Some(path);
    }
    // The mark of OpenVZ.
    let (path, inode) = path.strip_suffix(')')?.rsplit_once("(path inode=")?;
    inode.bytes().all(|byte| byte.is_ascii_digit()).then(|| path.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    // As in /proc of Linux 6.18.
    #[test]
    fn deleted_files_are_those_of_upgrades() {
        let maps = "5623551a6000-5623551a8000 r--p 00000000 fe:00 10028740                   /usr/lib/a b.so (deleted)\n\
                    5623551a8000-5623551ad000 r-xp 00002000 fe:00 10028740                   /usr/lib/a b.so (deleted)\n\
                    556e51517000-556e51519000 r--p 00000000 fe:00 247030                     /usr/bin/cat\n\
                    7f0000000000-7f0000001000 rw-s 00000000 00:01 1024                       /memfd:x (deleted)\n\
                    7f0000000000-7f0000001000 rw-s 00000000 00:0e 99                         /[aio] (deleted)\n\
                    7f0000000000-7f0000001000 rw-s 00000000 00:0e 99                         /tmp/x (deleted)\n\
                    7f0000000000-7f0000001000 r--p 00000000 fe:00 98                         /opt/app/lib.so(path inode=123)\n\
                    7ffd0b2f2000-7ffd0b313000 rw-p 00000000 00:00 0                          [stack]\n\
                    7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n\
                    \n   \nodd (deleted)\n (deleted)\n";
        assert_eq!(deleted(maps), ["/usr/lib/a b.so", "/opt/app/lib.so"]);
    }
}
