//! `sh`: the commands that users run in login shells, traced with strace.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use brine_system::processes;
use brine_value::{Map, Value, map};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, User};

use super::settings::Settings;
use super::{Beacon, Kind, Options, PollContext, entry};

/// The maximum number of queued lines of a traced shell between two polls.
const MAX_QUEUED_LINES: usize = 10_000;

#[derive(Default)]
struct Shells(HashMap<u32, Traced>);

/// A shell that is traced.
struct Traced {
    strace: Child,
    lines: Receiver<String>,
    user: String,
}

impl Drop for Traced {
    fn drop(&mut self) {
        // strace detaches from the shell on SIGTERM, but not on SIGKILL. The number of one that was reaped may belong to
        // another process.
        if let (Ok(None), Ok(pid)) = (self.strace.try_wait(), i32::try_from(self.strace.id())) {
            _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        _ = self.strace.wait();
    }
}

pub(super) const KIND: Kind = Kind {
    name: "sh",
    doc: "Commands executed in interactive shells, traced by `strace`.",
    tag: "the PID of the shell",
    options: Options::Named(&[]),
    fields: &[
        entry("cmd", "The path of the program."),
        entry("args", "The list of arguments."),
        entry("user", "The name of the shell's user."),
    ],
    is_available,
    start,
};

fn start(_settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    Ok(Box::new(Shells::default()))
}

/// Returns whether strace is in the `PATH`.
pub(super) fn is_available() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join("strace").is_file())
}

/// Returns the PIDs and users of processes whose command line is that of an interactive shell.
fn shells(proc: &Path, shells_text: &str) -> Vec<(u32, String)> {
    let paths: Vec<&str> = shells_text.lines().filter(|line| line.starts_with('/')).collect();
    let one = |directory: &Path| {
        let pid = directory.file_name()?.to_str()?.parse().ok()?;
        let line = std::fs::read(directory.join("cmdline")).ok()?;
        let line: Vec<&[u8]> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
        let [word] = line[..] else { return None };
        let word = String::from_utf8_lossy(word);
        let name = word.trim_start_matches('-');
        let is = |shell: &&str| **shell == *name || shell.rsplit('/').next() == Some(name);
        paths.iter().any(is).then(|| Some((pid, owner(directory)?)))?
    };
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    entries.filter_map(|entry| one(&entry.path())).collect()
}

fn owner(directory: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let uid = std::fs::metadata(directory).ok()?.uid();
    let name = User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
    Some(name.unwrap_or_else(|| uid.to_string()))
}

fn trace(pid: u32, user: String) -> Result<Traced, String> {
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "execve", "-p", &pid.to_string()]);
    let failed = |error: std::io::Error| format!("starting strace failed: {error}");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut strace = processes::start(&mut command).map_err(failed)?;
    let (tell, lines) = mpsc::sync_channel(MAX_QUEUED_LINES);
    if let Some(output) = strace.stderr.take() {
        std::thread::spawn(move || {
            // The thread ends with strace. Lines that exceed the queue are dropped; otherwise the shell would block.
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                _ = tell.try_send(line);
            }
        });
    }
    Ok(Traced { strace, lines, user })
}

/// Parses a line of strace: the quoted strings after `execve`.
fn command(line: &str, pid: u32, user: &str) -> Option<Map> {
    let (_, call) = line.split_once("execve")?;
    let mut words = call.split('"').skip(1).step_by(2);
    let cmd = words.next()?;
    let args: Value = words.collect();
    Some(map! {"args" => args, "tag" => pid.to_string(), "cmd" => cmd, "user" => user})
}

impl Beacon for Shells {
    fn poll(&mut self, _context: &PollContext<'_>) -> Result<Vec<Map>, String> {
        for (pid, user) in shells(Path::new("/proc"), &super::read("/etc/shells")?) {
            if let Entry::Vacant(place) = self.0.entry(pid) {
                place.insert(trace(pid, user)?);
            }
        }
        let mut report = Vec::new();
        self.0.retain(|pid, traced| {
            let ended = traced.strace.try_wait().map_or(true, |ended| ended.is_some());
            report.extend(traced.lines.try_iter().filter_map(|line| command(&line, *pid, &traced.user)));
            !ended
        });
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn commands_are_parsed_from_the_lines_of_strace() {
        for (line, expected) in [
            (
                r#"[pid 77] execve("/usr/bin/ls", ["ls", "-l"], 0x55 /* 20 vars */) = 0"#,
                Some(map! {"args" => list!["ls", "-l"], "tag" => "5", "cmd" => "/usr/bin/ls", "user" => "ada"}),
            ),
            ("--- SIGCHLD {si_signo=SIGCHLD} ---", None),
            ("strace: Process 5 attached", None),
        ] {
            assert_eq!(command(line, 5, "ada"), expected);
        }
    }

    #[test]
    fn login_shells_are_found_by_their_command_lines() {
        let directory = tempfile::tempdir().unwrap();
        for (pid, line) in
            [("1", &b"-bash\0"[..]), ("2", b"/bin/bash\0"), ("3", b"bash\0-c\0x\0"), ("4", b"vi\0"), ("5", b"")]
        {
            std::fs::create_dir(directory.path().join(pid)).unwrap();
            std::fs::write(directory.path().join(pid).join("cmdline"), line).unwrap();
        }
        let mut pids: Vec<u32> =
            shells(directory.path(), "# shells\n/bin/sh\n/bin/bash\n").into_iter().map(|(pid, _)| pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [1, 2]);
    }
}
