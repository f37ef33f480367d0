//! Mounted file systems.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;
use brine_host::accounts::Accounts;
use brine_system::files;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

/// A mounted file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mount {
    /// IDs of the mount and of its parent, and the device's major and minor number.
    pub numbers: [String; 4],
    /// Mounted directory within the file system.
    pub root: String,
    /// Mounted device.
    pub device: String,
    /// Device name in the output of `mount`.
    pub alt_device: Option<String>,
    /// The type.
    pub fstype: String,
    /// Options of the mount.
    pub opts: Vec<String>,
    /// Options of the file system.
    pub superopts: Vec<String>,
}

impl Mount {
    /// Returns the mount as `mount.active` reports it.
    pub fn describe(&self, extended: bool) -> Map {
        let mut report = map! {
            "device" => &self.device,
            "alt_device" => self.alt_device.as_deref(),
            "fstype" => &self.fstype,
            "opts" => self.opts.clone(),
        };
        if extended {
            let [mount, parent, major, minor] = &self.numbers;
            report.extend(map! {
                "mountid" => mount,
                "parentid" => parent,
                "major" => major,
                "minor" => minor,
                "root" => &self.root,
                "superopts" => self.superopts.clone(),
                "device_uuid" => device_identifier("uuid", &self.device).map(|uuid| uuid.to_lowercase()),
                "device_label" => device_identifier("label", &self.device),
            });
        } else {
            report.insert("opts".into(), self.all_opts().into());
        }
        report
    }

    /// Returns the options of mount and file system together, as in `/proc/self/mounts`.
    fn all_opts(&self) -> Vec<String> {
        let more = self.superopts.iter().filter(|opt| !self.opts.contains(opt) && *opt != "rw" && *opt != "ro");
        self.opts.iter().chain(more).cloned().collect()
    }
}

/// Returns all mounts by mount point. Blanks in mount points are written as `\040`.
pub fn read(context: &Context) -> Result<IndexMap<String, Mount>, CallError> {
    let text = files::read_to_string("/proc/self/mountinfo").map_err(CallError::execution)?;
    // Without the program `mount`, there are no alternative device names.
    let listed = run(context, &["mount".into(), "-l".into()], &[]).map(|output| output.stdout).unwrap_or_default();
    Ok(parse(&text, &listed, &Accounts::read()))
}

fn parse(text: &str, listed: &str, accounts: &Accounts) -> IndexMap<String, Mount> {
    let mut mounts = IndexMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(end) = words.iter().position(|word| *word == "-") else { continue };
        let ([mount, parent, numbers, root, name, opts, ..], [_, fstype, device, superopts, ..]) =
            (&words[..end], &words[end..])
        else {
            continue;
        };
        let (major, minor) = numbers.split_once(':').unwrap_or((numbers, ""));
        let alt = listed.lines().rev().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words.get(2) == Some(name)).then(|| words[0].to_owned())
        });
        let options = |opts: &str| opts.split(',').map(|opt| numbered(opt, accounts).replace("\\040", "\\ ")).collect();
        let mount = Mount {
            numbers: [mount, parent, major, minor].map(|number| (*number).to_owned()),
            root: (*root).to_owned(),
            device: device.replace("\\040", "\\ "),
            alt_device: alt,
            fstype: (*fstype).to_owned(),
            opts: options(opts),
            superopts: options(superopts),
        };
        mounts.insert((*name).to_owned(), mount);
    }
    mounts
}

/// Returns an option with the name of a user or group replaced by its ID.
pub fn numbered(opt: &str, accounts: &Accounts) -> String {
    let number = match opt.split_once('=') {
        Some(("uid", name)) => accounts.user(name).map(|user| user.uid),
        Some(("gid", name)) => accounts.group(name).map(|group| group.gid),
        _ => None,
    };
    match (opt.split_once('='), number) {
        (Some((key, _)), Some(number)) => format!("{key}={number}"),
        _ => opt.to_owned(),
    }
}

/// Returns the UUID, label or other identifier (`kind`) of a device, by the links of udev in `/dev/disk`.
pub fn device_identifier(kind: &str, device: &str) -> Option<String> {
    let device = std::fs::canonicalize(device).ok()?;
    let mut links = std::fs::read_dir(format!("/dev/disk/by-{kind}")).ok()?.flatten();
    let link = links.find(|link| std::fs::canonicalize(link.path()).is_ok_and(|target| target == device))?;
    Some(link.file_name().to_string_lossy().replace("\\x20", " "))
}

/// Resolves a UUID, label or other identifier, such as `UUID=..`, to its device.
pub fn resolve_device(token: &str) -> Option<String> {
    let (kind, value) = token.split_once('=')?;
    let link = format!("/dev/disk/by-{}/{}", kind.to_lowercase(), value.trim_matches('"').replace(' ', "\\x20"));
    Some(std::fs::canonicalize(link).ok()?.display().to_string())
}

/// Returns mounts as `mount.active` reports them.
pub fn describe(mounts: &IndexMap<String, Mount>, extended: bool) -> Value {
    let report = mounts.iter().map(|(name, mount)| (name.as_str().into(), mount.describe(extended).into()));
    Value::Map(report.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_parsed() {
        let text = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
            30 22 0:5 / /a\\040b rw - vfat /dev/b\\040c rw,uid=fred,gid=5\nbroken\n";
        let accounts = Accounts::parse("fred:x:7:7::/:/bin/sh\n", "");
        let mounts = parse(text, "/dev/root on / type ext4 (rw)\n", &accounts);
        assert_eq!(mounts["/"].alt_device.as_deref(), Some("/dev/root"));
        assert_eq!(mounts["/"].all_opts(), ["rw", "relatime", "errors=remount-ro"]);
        let second = &mounts["/a\\040b"];
        assert_eq!(
            (second.device.as_str(), &second.superopts[1..]),
            ("/dev/b\\ c", &["uid=7".into(), "gid=5".into()][..])
        );
        assert_eq!(mounts.len(), 2);
    }
}
