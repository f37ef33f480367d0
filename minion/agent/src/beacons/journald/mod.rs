//! `journald`: entries of the systemd journal.
//!
//! `journalctl --follow` runs as long as the beacon. A thread passes its lines to the poll through a bounded queue.
//! While the queue is full, journalctl blocks; afterwards it continues where it stopped.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};

use brine_system::processes;
use brine_value::json::from_json;
use brine_value::{Map, Value};
use jiff::Timestamp;

use super::settings::Settings;
use super::{Beacon, Kind, Options, PollContext, entry};

/// The maximum number of entries that one poll reads; the next one continues.
const MAX_ENTRIES: usize = 10_000;
/// The capacity of the queue of lines that wait for a poll.
const QUEUE_CAPACITY: usize = 1_000;
/// The longest line, in bytes; the fields of longer ones are not read.
const MAX_LINE: u64 = 1 << 20;

/// The fields that are integers: those that the Python package `systemd` converts.
const INTEGERS: &[&str] = &[
    "CODE_LINE",
    "COREDUMP_GID",
    "COREDUMP_PID",
    "COREDUMP_SESSION",
    "COREDUMP_SIGNAL",
    "COREDUMP_UID",
    "ERRNO",
    "EXIT_STATUS",
    "INITRD_USEC",
    "KERNEL_USEC",
    "LEADER",
    "PRIORITY",
    "SYSLOG_FACILITY",
    "SYSLOG_PID",
    "USERSPACE_USEC",
    "_AUDIT_LOGINUID",
    "_AUDIT_SESSION",
    "_GID",
    "_PID",
    "_SYSTEMD_OWNER_UID",
    "_UID",
];
/// The fields that are times, in microseconds since 1970.
const TIMES: &[&str] = &["_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"];

struct Journal {
    /// The program and its arguments.
    command: Vec<String>,
    /// The services with the fields that select their entries.
    services: Vec<(String, Map)>,
    /// The running journalctl, started by the first poll and restarted when it has ended.
    follower: Option<Follower>,
    /// The cursor of the last entry.
    cursor: Option<String>,
}

/// A running journalctl.
struct Follower {
    child: Child,
    lines: Receiver<Vec<u8>>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

pub(super) const KIND: Kind = Kind {
    name: "journald",
    doc: "New entries of the systemd journal, read by `journalctl`.",
    tag: "the name of the service in the configuration",
    options: Options::Named(&[entry(
        "services",
        "A mapping of names to the fields of their entries with their values, such as \
         `{sshd: {SYSLOG_IDENTIFIER: sshd, PRIORITY: 6}}`. An entry has all of them.",
    )]),
    fields: &[
        entry("MESSAGE", "The message. The other fields of the entry are fields of the event, too."),
        entry("__REALTIME_TIMESTAMP", "The time at which the journal received the entry, in ISO 8601."),
    ],
    is_available,
    start,
};

fn is_available() -> bool {
    processes::find("journalctl".as_ref()).is_some()
}

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let command = ["journalctl", "--follow", "--all", "--quiet", "--no-pager", "--output=json"].map(str::to_owned);
    Ok(Box::new(Journal { command: command.into(), services: services(settings)?, follower: None, cursor: None }))
}

fn services(settings: &Settings) -> Result<Vec<(String, Map)>, String> {
    if settings.get("services").is_none() {
        return Ok(Vec::new());
    }
    let one = |(name, fields): (&Value, &Value)| {
        let wrong = || format!("services: {name}: expected a mapping of fields, got {fields}");
        Ok((name.to_string(), fields.as_map().ok_or_else(wrong)?.clone()))
    };
    settings.map("services")?.iter().map(one).collect()
}

impl Journal {
    fn follow(&self) -> Result<Follower, String> {
        let (program, words) = self.command.split_first().ok_or("no program")?;
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        match &self.cursor {
            Some(cursor) => command.arg(format!("--after-cursor={cursor}")),
            // From the end of the journal.
            None => command.arg("--lines=0"),
        };
        let mut child =
            processes::start(&mut command).map_err(|error| format!("starting journalctl failed: {error}"))?;
        let (queue, lines) = mpsc::sync_channel(QUEUE_CAPACITY);
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || queue_lines(output, &queue));
        }
        Ok(Follower { child, lines })
    }

    fn events(&mut self) -> Result<Vec<Map>, String> {
        let follower = match self.follower.take() {
            Some(follower) => follower,
            None => self.follow()?,
        };
        let (mut report, mut has_read) = (Vec::new(), false);
        for _ in 0..MAX_ENTRIES {
            let line = match follower.lines.try_recv() {
                Ok(line) => line,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) if has_read => return Ok(report),
                Err(TryRecvError::Disconnected) => {
                    // The cursor may be the cause: its entry may be gone.
                    self.cursor = None;
                    return Err("journalctl has ended; restarting it at the next poll".into());
                }
            };
            has_read = true;
            let Some(entry) = parsed(&line) else {
                tracing::warn!(beacon = "journald", length = line.len(), "an entry is not valid JSON or too long");
                continue;
            };
            if let Some(cursor) = entry.get("__CURSOR").and_then(Value::as_str) {
                self.cursor = Some(cursor.to_owned());
            }
            for (name, _) in self.services.iter().filter(|(_, fields)| has(&entry, fields)) {
                let mut event = entry.clone();
                event.insert("tag".into(), name.as_str().into());
                report.push(event);
            }
        }
        self.follower = Some(follower);
        Ok(report)
    }
}

/// Queues the lines of journalctl until it ends or the beacon is dropped.
fn queue_lines(output: ChildStdout, queue: &SyncSender<Vec<u8>>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        match output.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if queue.send(line).is_err() => return,
            Ok(_) => {}
        }
    }
}

/// Parses an entry, with the types that the Python package `systemd` gives to its fields.
fn parsed(line: &[u8]) -> Option<Map> {
    let Ok(Value::Map(fields)) = from_json(std::str::from_utf8(line).ok()?) else { return None };
    let convert = |name: &Value, value: Value| {
        let (Some(name), Some(text)) = (name.as_str(), value.as_str()) else { return value };
        if INTEGERS.contains(&name) {
            return text.parse::<i64>().map_or(value.clone(), Value::from);
        }
        let time = || Timestamp::from_microsecond(text.parse().ok()?).ok();
        if TIMES.contains(&name) {
            return time().map_or(value.clone(), |time| time.to_string().into());
        }
        value
    };
    Some(fields.into_iter().map(|(name, value)| (name.clone(), convert(&name, value))).collect())
}

/// Returns whether an entry has all these fields.
fn has(entry: &Map, fields: &Map) -> bool {
    fields.iter().all(|(name, expected)| entry.get(name).is_some_and(|value| value == expected))
}

impl Beacon for Journal {
    fn poll(&mut self, _context: &PollContext<'_>) -> Result<Vec<Map>, String> {
        self.events()
    }
}

#[cfg(test)]
mod tests;
