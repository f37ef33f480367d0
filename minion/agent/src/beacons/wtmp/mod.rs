//! `wtmp`: logins and logouts, from the system's records. `btmp` reads records of the same form.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use brine_schedule::dates;
use brine_value::{Map, Value, map};
use jiff::Zoned;
use jiff::civil::DateTime;
use nix::unistd::{Gid, Group, User};

use super::settings::Settings;
use super::{Beacon, Entry, Kind, Options, PollContext, entry};

/// The file of logins and logouts.
const WTMP: &str = "/var/log/wtmp";
/// The size of a record on 64-bit Linux.
const RECORD_SIZE: u64 = 384;
/// The maximum number of bytes that one poll reads; the next one continues.
const MAX_READ: u64 = 1000 * RECORD_SIZE;
/// The types of login and logout records.
const LOGIN: i16 = 7;
const LOGOUT: i16 = 8;

struct Logins {
    file: PathBuf,
    /// Whether events have the field `action`; those of failed logins do not.
    has_actions: bool,
    users: Vec<LoginRule>,
    groups: Vec<LoginRule>,
    defaults: Option<TimeRange>,
    /// The offset after the last record read; `None` before the first poll, which starts at the end of the file.
    offset: Option<u64>,
    /// The users by terminal: logout records contain no user name.
    on_line: HashMap<String, String>,
}

/// A user or group whose logins are reported, at any time or in a time range.
struct LoginRule {
    name: String,
    times: Option<TimeRange>,
}

#[derive(Clone)]
struct TimeRange {
    start: String,
    end: String,
}

/// The options of the login beacons `wtmp` and `btmp`.
pub(super) const LOGIN_OPTIONS: &[Entry] = &[
    entry(
        "users",
        "A mapping of user names to options: `time_range: {start: 8am, end: 17:30}`, or nothing. With `users` or \
         `groups`, only logins of these users and of members of these groups are reported.",
    ),
    entry("groups", "A mapping of group names to options, in the form of `users`."),
    entry("defaults", "The `time_range` of users and groups without one, or of all logins."),
];

/// The fields of a login record.
pub(super) const LOGIN_FIELDS: &[Entry] = &[
    entry("action", "`login` or `logout`; not for failed logins."),
    entry("user", "The user name."),
    entry("line", "The terminal."),
    entry("hostname", "The remote host."),
    entry("type", "The type of the record."),
    entry("PID", "The PID of the login process."),
    entry(
        "inittab, exit_status, session, time, addr",
        "Further fields of the record, under Salt's names: `exit_status` and `session` are the two halves of the \
         exit status, `time` is the session, `addr` the time in seconds.",
    ),
];

pub(super) const KIND: Kind = Kind {
    name: "wtmp",
    doc: "Logins and logouts, read from `/var/log/wtmp`.",
    options: Options::Named(LOGIN_OPTIONS),
    fields: LOGIN_FIELDS,
    is_available: || Path::new(WTMP).is_file(),
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    start_for(settings, WTMP, true)
}

/// Creates the beacon for a file of login records.
pub(super) fn start_for(settings: &Settings, file: &str, has_actions: bool) -> Result<Box<dyn Beacon>, String> {
    let who = |name: &str| -> Result<Vec<LoginRule>, String> {
        let Some(value) = settings.get(name) else { return Ok(Vec::new()) };
        let all = value.as_map().ok_or_else(|| format!("option '{name}': expected a mapping, got {value}"))?;
        let one = |(who, options): (&Value, &Value)| {
            Ok(LoginRule { name: who.to_string(), times: times(&format!("{name}: {who}"), Some(options))? })
        };
        all.iter().map(one).collect()
    };
    let defaults = match settings.get("defaults") {
        None | Some(Value::Map(_)) => times("defaults", settings.get("defaults"))?,
        Some(other) => return Err(format!("option 'defaults': expected a mapping, got {other}")),
    };
    let (users, groups) = (who("users")?, who("groups")?);
    let file = file.into();
    Ok(Box::new(Logins { file, has_actions, users, groups, defaults, offset: None, on_line: HashMap::new() }))
}

fn times(of: &str, options: Option<&Value>) -> Result<Option<TimeRange>, String> {
    let Some(range) = options.and_then(|options| options.get("time_range")) else { return Ok(None) };
    let part = |name: &str| {
        let text =
            range.get(name).map(ToString::to_string).ok_or_else(|| format!("{of}: time_range has no '{name}'"))?;
        let wrong = format!("{of}: '{text}' is not a time: expected a time such as 8am or 17:30");
        dates::parse(&text, jiff::civil::Date::constant(2026, 1, 1)).map(|_| text).ok_or(wrong)
    };
    Ok(Some(TimeRange { start: part("start")?, end: part("end")? }))
}

impl TimeRange {
    fn has(&self, now: DateTime) -> bool {
        let at = |text: &str| dates::parse(text, now.date());
        at(&self.start).is_some_and(|start| start <= now) && at(&self.end).is_some_and(|end| now <= end)
    }
}

impl Logins {
    /// Returns whether a login of this user is reported at this time.
    fn wants(&self, user: &str, now: DateTime, is_member: impl Fn(&str) -> bool) -> bool {
        let in_time = |times: Option<&TimeRange>| times.or(self.defaults.as_ref()).is_none_or(|range| range.has(now));
        if self.users.is_empty() && self.groups.is_empty() {
            return in_time(None);
        }
        let named = self.users.iter().find(|who| who.name == user);
        let member = || self.groups.iter().find(|who| is_member(&who.name));
        named.or_else(member).is_some_and(|who| in_time(who.times.as_ref()))
    }

    fn events(&mut self, now: &Zoned) -> std::io::Result<Vec<Map>> {
        let mut file = File::open(&self.file)?;
        let end = file.metadata()?.len();
        let end = end - end % RECORD_SIZE;
        let Some(offset) = self.offset.replace(end) else { return Ok(Vec::new()) };
        // A file that has shrunk was rotated.
        let offset = if offset > end { 0 } else { offset };
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(MAX_READ.min(end - offset)).read_to_end(&mut bytes)?;
        self.offset = Some(offset + bytes.len() as u64);
        let mut report = Vec::new();
        for entry in bytes.chunks_exact(RECORD_SIZE as usize) {
            let mut event = read(entry);
            if self.has_actions {
                self.add_action(&mut event);
            }
            let user = event.get("user").map(ToString::to_string).unwrap_or_default();
            if self.wants(&user, now.datetime(), |group| is_member(&user, group)) {
                report.push(event);
            }
        }
        Ok(report)
    }

    fn add_action(&mut self, event: &mut Map) {
        let line = event.get("line").map(ToString::to_string).unwrap_or_default();
        match event.get("type").and_then(Value::as_i64).unwrap_or_default() {
            kind if kind == i64::from(LOGIN) => {
                event.insert("action".into(), "login".into());
                let user = event.get("user").map(ToString::to_string).unwrap_or_default();
                self.on_line.insert(line, user);
            }
            kind if kind == i64::from(LOGOUT) => {
                event.insert("action".into(), "logout".into());
                if let Some(user) = self.on_line.remove(&line) {
                    event.insert("user".into(), user.into());
                }
            }
            _ => {}
        }
    }
}

/// Parses the fields of a record under Salt's names. Salt assigns four names to six fields: `exit_status` and
/// `session` are the two halves of the exit status, `time` is the session, `addr` the time in seconds.
fn read(entry: &[u8]) -> Map {
    let bytes = |from: usize, len: usize| entry.get(from..from + len).unwrap_or_default();
    let word = |from| i64::from(i32::from_ne_bytes(bytes(from, 4).try_into().unwrap_or_default()));
    let half = |from| i64::from(i16::from_ne_bytes(bytes(from, 2).try_into().unwrap_or_default()));
    let text = |from, len| {
        let text = bytes(from, len);
        String::from_utf8_lossy(text.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
    };
    map! {
        "type" => half(0),
        "PID" => word(4),
        "line" => text(8, 32),
        "inittab" => text(40, 4),
        "user" => text(44, 32),
        "hostname" => text(76, 256),
        "exit_status" => half(332),
        "session" => half(334),
        "time" => word(336),
        "addr" => word(340),
    }
}

/// Returns whether a group is the primary or a supplementary group of a user.
fn is_member(user: &str, group: &str) -> bool {
    let Ok(Some(group)) = Group::from_name(group) else { return false };
    let first = || User::from_name(user).ok().flatten().map(|user| user.gid);
    group.mem.iter().any(|member| member == user) || first() == Some(Gid::from_raw(group.gid.as_raw()))
}

impl Beacon for Logins {
    fn poll(&mut self, poll: &PollContext<'_>) -> Result<Vec<Map>, String> {
        self.events(poll.now).map_err(|error| format!("reading {} failed: {error}", self.file.display()))
    }
}

#[cfg(test)]
mod tests;
