//! A finding, and the order of several.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use brine_value::{Map, Value, map};

use crate::kinds::{Kind, NOT_SEEN, Severity};

/// The daemon that a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The master.
    Master,
    /// The minion.
    Minion,
    /// The REST API.
    Api,
    /// The syndic.
    Syndic,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 4] = [Role::Master, Role::Minion, Role::Api, Role::Syndic];

    /// Returns the name: `master`, `minion`, `api` or `syndic`.
    pub fn name(self) -> &'static str {
        match self {
            Role::Master => "master",
            Role::Minion => "minion",
            Role::Api => "api",
            Role::Syndic => "syndic",
        }
    }

    /// Returns what people call the daemon.
    pub fn noun(self) -> &'static str {
        match self {
            Role::Api => "REST API",
            other => other.name(),
        }
    }

    /// Returns the name of the file of its configuration.
    pub fn config_file(self) -> &'static str {
        match self {
            Role::Minion => "minion",
            Role::Master | Role::Api | Role::Syndic => "master",
        }
    }
}

/// A mend that `--fix` may make by itself: nothing is lost by it, and it can be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// Sets the mode of a file or directory.
    Mode(PathBuf, u32),
    /// Sets the owner and group of a file or directory.
    Owner(PathBuf, u32, u32),
    /// Creates a directory with this mode, and owner and group if they are known.
    Directory(PathBuf, u32, Option<(u32, u32)>),
    /// Removes the PID file of a process that is not there.
    PidFile(PathBuf),
    /// Removes a socket on which nobody listens.
    Socket(PathBuf),
}

impl Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repair::Mode(path, mode) => write!(f, "chmod {mode:04o} {}", quoted(path)),
            Repair::Owner(path, uid, gid) => write!(f, "chown {uid}:{gid} {}", quoted(path)),
            Repair::Directory(path, mode, None) => write!(f, "mkdir -p -m {mode:04o} {}", quoted(path)),
            Repair::Directory(path, mode, Some((uid, gid))) => {
                write!(f, "install -d -m {mode:04o} -o {uid} -g {gid} {}", quoted(path))
            }
            Repair::PidFile(path) | Repair::Socket(path) => write!(f, "rm {}", quoted(path)),
        }
    }
}

/// Returns a path as a word of a shell.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// A finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Its kind.
    pub kind: &'static Kind,
    /// The daemon.
    pub role: Role,
    /// What was found, in one sentence.
    pub what: String,
    /// The file, port, option or host.
    pub place: String,
    /// Why it is so, or how it is known.
    pub why: String,
    /// The command that mends it; a line that begins with `#` explains.
    pub mend: String,
    /// The mend that `--fix` makes.
    pub repair: Option<Repair>,
    /// The number of similar findings that were left out.
    pub more: usize,
}

impl Finding {
    /// Creates a finding; the other fields are added by its methods.
    pub fn new(kind: &'static Kind, role: Role, what: impl Display) -> Self {
        Finding {
            kind,
            role,
            what: what.to_string(),
            place: String::new(),
            why: String::new(),
            mend: kind.mend.to_owned(),
            repair: None,
            more: 0,
        }
    }

    /// Sets where it is.
    #[must_use]
    pub fn at(self, place: impl Display) -> Self {
        Finding { place: place.to_string(), ..self }
    }

    /// Sets why it is so.
    #[must_use]
    pub fn because(self, why: impl Display) -> Self {
        Finding { why: why.to_string(), ..self }
    }

    /// Sets the command that mends it.
    #[must_use]
    pub fn mended_by(self, command: impl Display) -> Self {
        Finding { mend: command.to_string(), ..self }
    }

    /// Sets the mend that `--fix` makes, which is also the command.
    #[must_use]
    pub fn repaired_by(self, repair: Repair) -> Self {
        Finding { mend: repair.to_string(), repair: Some(repair), ..self }
    }

    fn is_unseen_with(&self, other: &Finding) -> bool {
        let is_same = self.kind == other.kind && self.role == other.role && self.why == other.why;
        is_same && *self.kind == NOT_SEEN && self.place.len() < MAX_PLACE
    }

    /// Returns the fields as data.
    pub fn to_value(&self) -> Map {
        map! {
            "kind" => self.kind.name,
            "severity" => self.kind.severity.name(),
            "role" => self.role.name(),
            "what" => self.what.as_str(),
            "where" => self.place.as_str(),
            "why" => self.why.as_str(),
            "mend" => self.mend.as_str(),
            "fix" => self.repair.is_some(),
            "more" => self.more,
        }
    }
}

/// The length of the places of findings that are made one, in bytes.
const MAX_PLACE: usize = 1000;
/// The number of findings of one kind and role that [`trimmed`] leaves.
const SHOWN: usize = 10;

/// Sorts findings: errors first, then causes before what follows from them. What follows from an error of the same role
/// is left out, as are doubles.
pub fn sorted(findings: Vec<Finding>) -> Vec<Finding> {
    let hides = |one: &Finding| {
        findings.iter().any(|cause| cause.role == one.role && cause.kind.hides.contains(&one.kind.name))
    };
    let mut causes: Vec<Finding> = findings.iter().filter(|one| !hides(one)).cloned().collect();
    causes.sort_by_key(|one| (std::cmp::Reverse(one.kind.severity), one.kind.rank(), one.role));
    causes.dedup();
    causes
}

/// Leaves the first findings of each kind and role, and counts the others in the last of them. What could not be seen for
/// the same reason becomes one.
pub fn trimmed(findings: Vec<Finding>) -> Vec<Finding> {
    let mut list: Vec<Finding> = Vec::with_capacity(findings.len());
    let mut run = 0;
    for one in findings {
        if let Some(last) = list.last_mut().filter(|last| last.is_unseen_with(&one)) {
            "some files could not be read".clone_into(&mut last.what);
            last.place = format!("{}, {}", last.place, one.place);
            continue;
        }
        run = if list.last().is_some_and(|last| last.kind == one.kind && last.role == one.role) { run + 1 } else { 1 };
        match list.last_mut().filter(|_| run > SHOWN) {
            Some(last) => last.more += 1,
            None => list.push(one),
        }
    }
    list
}

/// Returns whether a finding is an error.
pub fn has_errors(findings: &[Finding]) -> bool {
    findings.iter().any(|one| one.kind.severity == Severity::Error)
}

/// Returns findings as data.
pub fn to_values(findings: &[Finding]) -> Value {
    findings.iter().map(|one| Value::from(one.to_value())).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{CONFIG_WARNING, DAEMON_DOWN, DISK_FULL, KINDS, MINION_AWAY, PID_STALE};

    fn names(findings: &[Finding]) -> Vec<(&str, &str)> {
        findings.iter().map(|one| (one.kind.name, one.role.name())).collect()
    }

    #[test]
    fn causes_come_first_and_hide_what_follows_in_the_same_role() {
        let one = |kind, role| Finding::new(kind, role, "x");
        let findings = sorted(vec![
            one(&CONFIG_WARNING, Role::Master),
            one(&MINION_AWAY, Role::Master),
            one(&MINION_AWAY, Role::Minion),
            one(&PID_STALE, Role::Master),
            one(&DAEMON_DOWN, Role::Master),
            one(&DISK_FULL, Role::Master),
            one(&DISK_FULL, Role::Master),
        ]);
        assert_eq!(
            names(&findings),
            [
                ("disk-full", "master"),
                ("daemon-down", "master"),
                ("minion-away", "minion"),
                ("pid-stale", "master"),
                ("config-warning", "master"),
            ]
        );
        assert!(has_errors(&findings) && !has_errors(&findings[3..]));
    }

    #[test]
    fn many_findings_of_a_kind_are_counted() {
        let findings = (0..25).map(|n| Finding::new(&CONFIG_WARNING, Role::Master, n)).collect();
        let findings = trimmed(sorted(findings));
        assert_eq!((findings.len(), findings[9].more, findings[8].more), (SHOWN, 15, 0));
    }

    #[test]
    fn no_kind_is_hidden_by_what_it_hides() {
        for kind in KINDS {
            for hidden in kind.hides {
                let hidden = KINDS.iter().find(|one| one.name == *hidden).unwrap();
                assert!(!hidden.hides.contains(&kind.name), "{} and {}", kind.name, hidden.name);
            }
        }
    }

    #[test]
    fn commands_quote_paths() {
        for (path, expected) in [("/a/b-c", "/a/b-c"), ("/a b", "'/a b'"), ("/a'b;c", "'/a'\\''b;c'"), ("", "''")] {
            assert_eq!(quoted(Path::new(path)), expected);
        }
        assert_eq!(Repair::Mode("/x".into(), 0o400).to_string(), "chmod 0400 /x");
    }
}
