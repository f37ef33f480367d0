//! The table of file systems: `/etc/fstab`.

use std::path::Path;

use brine_function::{Args, CallError};
use brine_system::files;
use brine_value::{Map, Value, map};

/// The arguments for an entry of the table.
#[derive(Args)]
pub struct EntryArgs {
    /// Mount options, as a list or separated by commas.
    #[default("defaults".into())]
    pub(crate) opts: Value,
    /// Field of the table for `dump`.
    #[default(0.into())]
    pub(crate) dump: Value,
    /// Field of the table for `fsck`: the order of checks.
    #[default(0.into())]
    pub(crate) pass_num: Value,
    /// Path of the table of file systems.
    #[default("/etc/fstab".into())]
    pub(crate) config: String,
}

/// Types of file systems that `match_on: auto` identifies by their mount point instead of their device.
const WITHOUT_DEVICE: [&str; 14] = [
    "none",
    "tmpfs",
    "sysfs",
    "proc",
    "fusectl",
    "debugfs",
    "securityfs",
    "devtmpfs",
    "cgroup",
    "nfs",
    "nfs4",
    "glusterfs",
    "btrfs",
    "ceph",
];

/// A file system. Blanks in fields are written as `\040`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Device.
    pub device: String,
    /// Mount point.
    pub name: String,
    /// The type.
    pub fstype: String,
    /// Options, separated by commas.
    pub opts: String,
    /// Field for `dump`.
    pub dump: String,
    /// Order of checks by `fsck`.
    pub pass: String,
}

/// Outcome of setting an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was added.
    New,
    /// It was changed.
    Changed,
    /// It was present already.
    Present,
}

impl Outcome {
    /// Returns the outcome as Salt names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::New => "new",
            Outcome::Changed => "change",
            Outcome::Present => "present",
        }
    }
}

/// How an entry is written to the table.
#[derive(Debug, Default)]
pub struct WriteOptions {
    /// Fields that identify an entry; `auto` is the device, or the mount point for types such as `tmpfs` or `nfs`.
    pub match_on: Vec<String>,
    /// Whether an existing entry is left unchanged.
    pub not_change: bool,
    /// Whether nothing is written.
    pub test: bool,
}

impl Entry {
    /// Builds an entry from the arguments of a state or call.
    pub fn new(name: &str, device: &str, fstype: &str, opts: &Value, dump: &Value, pass: &Value) -> Self {
        let written = |text: &str| text.replace("\\ ", "\\040");
        let opts = match opts {
            Value::List(opts) => opts.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
            other => other.to_string(),
        };
        Entry {
            device: written(device),
            name: name.replace(' ', "\\040"),
            fstype: fstype.to_owned(),
            opts: written(&opts),
            dump: dump.to_string(),
            pass: pass.to_string(),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if line.starts_with('#') || !(4..=6).contains(&words.len()) {
            return None;
        }
        let mut words = words.into_iter();
        let mut next = || words.next().unwrap_or_else(|| "0".into());
        Some(Entry { device: next(), name: next(), fstype: next(), opts: next(), dump: next(), pass: next() })
    }

    fn render(&self) -> String {
        let Entry { device, name, fstype, opts, dump, pass } = self;
        format!("{device}\t\t{name}\t{fstype}\t{opts}\t{dump} {pass}\n")
    }

    /// Whether a field is equal in both entries; the order of options does not matter. `None` if there is no such
    /// field.
    fn same(&self, other: &Self, field: &str) -> Option<bool> {
        let sorted = |opts: &str| {
            let mut opts: Vec<String> = opts.split(',').map(str::to_owned).collect();
            opts.sort();
            opts
        };
        Some(match field {
            "device" => self.device == other.device,
            "name" => self.name == other.name,
            "fstype" => self.fstype == other.fstype,
            "opts" => sorted(&self.opts) == sorted(&other.opts),
            "dump" => self.dump == other.dump,
            "pass_num" => self.pass == other.pass,
            _ => return None,
        })
    }

    fn describe(&self) -> Map {
        map! {
            "device" => &self.device,
            "fstype" => &self.fstype,
            "opts" => self.opts.split(',').collect::<Value>(),
            "dump" => &self.dump,
            "pass" => &self.pass,
        }
    }
}

/// Reads the entries of a table by mount point; duplicate ones get the suffix `_`. A missing file has none.
pub fn read(config: &str) -> Result<Vec<(String, Entry)>, CallError> {
    let text = files::read_if_exists(config).map_err(CallError::execution)?.unwrap_or_default();
    let mut entries: Vec<(String, Entry)> = Vec::new();
    for entry in text.lines().filter_map(Entry::parse) {
        let mut name = entry.name.clone();
        while entries.iter().any(|(have, _)| *have == name) {
            name.push('_');
        }
        entries.push((name, entry));
    }
    Ok(entries)
}

/// Returns entries as `mount.fstab` reports them.
pub fn describe(entries: &[(String, Entry)]) -> Map {
    entries.iter().map(|(name, entry)| (name.as_str().into(), entry.describe().into())).collect()
}

/// Adds or changes an entry in a table.
pub fn set(config: &str, entry: &Entry, how: &WriteOptions) -> Result<Outcome, CallError> {
    if !Path::new(config).is_file() {
        return Err(CallError::Execution(format!("Bad config file \"{config}\"")));
    }
    let text = files::read_to_string(config).map_err(CallError::execution)?;
    let (text, outcome) = with(&text, entry, how)?;
    if outcome != Outcome::Present && !how.test {
        files::rewrite(config, text.as_bytes(), 0o644).map_err(CallError::execution)?;
    }
    Ok(outcome)
}

/// Removes the entries of a mount point from a table, or only those of this device.
pub fn remove(config: &str, name: &str, device: Option<&str>) -> Result<(), CallError> {
    let text = files::read_to_string(config).map_err(CallError::execution)?;
    let is_it = |entry: Entry| entry.name == name && device.is_none_or(|device| entry.device == device);
    let new_text: String = text.split_inclusive('\n').filter(|line| !Entry::parse(line).is_some_and(is_it)).collect();
    if new_text != text {
        files::rewrite(config, new_text.as_bytes(), 0o644).map_err(CallError::execution)?;
    }
    Ok(())
}

/// Returns the text with an entry added or changed, and the outcome.
fn with(text: &str, entry: &Entry, how: &WriteOptions) -> Result<(String, Outcome), CallError> {
    const ALL: [&str; 6] = ["device", "name", "fstype", "opts", "dump", "pass_num"];
    let by = match &how.match_on[..] {
        [] => vec!["auto"],
        fields => fields.iter().map(String::as_str).collect(),
    };
    let by = match by[..] {
        ["auto"] if WITHOUT_DEVICE.contains(&entry.fstype.as_str()) => vec!["name"],
        ["auto"] => vec!["device"],
        _ => by,
    };
    if let Some(unknown) = by.iter().find(|field| !ALL.contains(field)) {
        let names = ALL.join(", ");
        return Err(CallError::Execution(format!("match_on is invalid: expected {names}, got '{unknown}'")));
    }
    let is_same = |fields: &[&str], have: &Entry| fields.iter().all(|field| have.same(entry, field) == Some(true));
    let (mut edited, mut outcome) = (String::new(), Outcome::New);
    for line in text.split_inclusive('\n') {
        match Entry::parse(line).filter(|have| is_same(&by, have)) {
            Some(have) if how.not_change || is_same(&ALL, &have) => {
                outcome = if outcome == Outcome::New { Outcome::Present } else { outcome };
                edited.push_str(line);
            }
            Some(_) => {
                outcome = Outcome::Changed;
                edited.push_str(&entry.render());
            }
            None => edited.push_str(line),
        }
    }
    if outcome == Outcome::New {
        if !edited.is_empty() && !edited.ends_with('\n') {
            edited.push('\n');
        }
        edited.push_str(&entry.render());
    }
    Ok((edited, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# /dev/a /a ext4 defaults\n/dev/a /a ext4 b,a 0 1\nbroken\ntmpfs /t tmpfs defaults";

    fn entry(device: &str, name: &str, fstype: &str, opts: &str) -> Entry {
        Entry::new(name, device, fstype, &opts.into(), &0.into(), &1.into())
    }

    #[test]
    fn entries_are_found_by_device_or_name() {
        for (entry, match_on, expected) in [
            (entry("/dev/a", "/a", "ext4", "a,b"), "auto", Outcome::Present),
            (entry("/dev/a", "/b", "ext4", "a,b"), "auto", Outcome::Changed),
            (entry("/dev/a", "/b", "ext4", "a,b"), "name", Outcome::New),
            (entry("other", "/t", "tmpfs", "defaults"), "auto", Outcome::Changed),
            (entry("/dev/b", "/b b", "ext4", "defaults"), "auto", Outcome::New),
        ] {
            let how = WriteOptions { match_on: vec![match_on.into()], ..WriteOptions::default() };
            let (text, outcome) = with(TEXT, &entry, &how).unwrap();
            assert_eq!(outcome, expected, "{entry:?}");
            assert_eq!(with(&text, &entry, &how).unwrap(), (text, Outcome::Present));
            let how = WriteOptions { not_change: true, ..how };
            assert_ne!(with(TEXT, &entry, &how).unwrap().1, Outcome::Changed);
        }
        let how = WriteOptions { match_on: vec!["sort".into()], ..WriteOptions::default() };
        assert!(with(TEXT, &entry("a", "b", "c", "d"), &how).is_err());
    }
}
