//! Parses the output of `repquota` and `quotaon`.

use brine_value::{Map, Value, list, map};

/// The columns of `repquota` after the name and the marks of exceeded limits.
const COLUMNS: [&str; 8] = [
    "block-used",
    "block-soft-limit",
    "block-hard-limit",
    "block-grace",
    "file-used",
    "file-soft-limit",
    "file-hard-limit",
    "file-grace",
];

/// Whose quotas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    Group,
}

impl Kind {
    pub fn flag(self) -> &'static str {
        match self {
            Kind::User => "-u",
            Kind::Group => "-g",
        }
    }

    /// Returns the key of the rows in a report.
    pub fn rows(self) -> &'static str {
        match self {
            Kind::User => "Users",
            Kind::Group => "Groups",
        }
    }

    /// Returns the name of the argument, which is also that in the output of `quotaon`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::User => "user",
            Kind::Group => "group",
        }
    }
}

/// Parses the output of `repquota -vp`: the rows by name, and the grace times.
pub(super) fn report(output: &str, kind: Kind) -> Map {
    let (mut rows, mut grace, mut in_rows) = (Map::new(), Map::new(), false);
    for line in output.lines() {
        if in_rows {
            rows.extend(row(line));
        } else if let Some((block, inode)) = line.split_once(';').filter(|_| line.contains("Block grace time")) {
            let time = |text: &str| list![text.rsplit(": ").next().unwrap_or_default()];
            grace = map! {"Block Grace Time" => time(block), "Inode Grace Time" => time(inode)};
        } else {
            in_rows = line.starts_with('-');
        }
    }
    let mut quotas = map! {kind.rows() => rows};
    quotas.extend(grace);
    quotas
}

/// Parses a row. Names of directory services may contain blanks.
fn row(line: &str) -> Option<(Value, Value)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (rest, values) = words.split_at_checked(words.len().checked_sub(COLUMNS.len())?)?;
    let (_marks, name) = rest.split_last().filter(|(_, name)| !name.is_empty())?;
    let about: Map = COLUMNS.iter().zip(values).map(|(column, value)| ((*column).into(), (*value).into())).collect();
    Some((name.join(" ").into(), about.into()))
}

/// Parses the output of `quotaon -p DEVICE`.
pub(super) fn modes(output: &str, device: &str) -> Map {
    let mut modes = Map::new();
    for line in output.lines() {
        if let Some(message) = line.strip_prefix("quotaon: ") {
            if message.starts_with("Cannot") {
                return map! {device => "Not found"};
            }
            let rest = message.strip_prefix("Mountpoint (or device) ");
            if let Some((mount, _)) = rest.and_then(|rest| rest.rsplit_once(" not found")) {
                modes.insert(mount.into(), "disabled".into());
            }
        } else if let Some(mode) = Mode::parse(line) {
            let about = modes.entry(mode.mount.into()).or_insert_with(|| map! {"device" => mode.device}.into());
            if let Value::Map(about) = about {
                about.insert(mode.kind.into(), mode.state.into());
            }
        }
    }
    modes
}

/// A line such as `user quota on /home (/dev/sda2) is on`.
struct Mode<'a> {
    kind: &'a str,
    mount: &'a str,
    device: &'a str,
    state: &'a str,
}

impl<'a> Mode<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (kind, rest) = line.trim().split_once(" quota on ")?;
        let (rest, state) = rest.rsplit_once(" is ")?;
        let (mount, device) = rest.rsplit_once(" (")?;
        let device = device.strip_suffix(')').unwrap_or(device);
        Some(Mode { kind, mount, device, state: state.split_whitespace().next()? })
    }
}
