//! Modes and owners of files.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use brine_core::{Map, Value};
use nix::unistd::{Gid, Group, Uid, User};

/// What a file's mode and owner should be; what is not said stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attributes {
    pub mode: Option<u32>,
    user: Option<(Value, Uid)>,
    group: Option<(Value, Gid)>,
}

impl Attributes {
    /// Reads a state's arguments. An error is in Salt's words.
    pub fn new(mode: &Value, user: &Value, group: &Value) -> Result<Self, String> {
        let mut attributes = Attributes::default();
        // `keep` is the mode of the source, which is not sent along.
        if mode.is_truthy() && mode.as_str() != Some("keep") {
            attributes.mode = Some(parse_mode(mode).ok_or_else(|| format!("Invalid mode: {mode}"))?);
        }
        if user.is_truthy() {
            let name = user.to_string();
            let found = match name.parse() {
                Ok(number) => Some(Uid::from_raw(number)),
                Err(_) => User::from_name(&name).ok().flatten().map(|user| user.uid),
            };
            let uid = found.ok_or_else(|| format!("User {name} is not available "))?;
            attributes.user = Some((user.clone(), uid));
        }
        if group.is_truthy() {
            let name = group.to_string();
            let found = match name.parse() {
                Ok(number) => Some(Gid::from_raw(number)),
                Err(_) => Group::from_name(&name).ok().flatten().map(|group| group.gid),
            };
            let gid = found.ok_or_else(|| format!("Group {name} is not available"))?;
            attributes.group = Some((group.clone(), gid));
        }
        Ok(attributes)
    }

    /// What would change.
    pub fn differences(&self, path: &Path) -> Map {
        let mut changes = Map::new();
        let Ok(status) = std::fs::metadata(path) else { return changes };
        if let Some(mode) = self.mode.filter(|mode| status.mode() & 0o7777 != *mode) {
            changes.insert("mode".into(), show_mode(mode).into());
        }
        if let Some((name, uid)) = &self.user
            && status.uid() != uid.as_raw()
        {
            changes.insert("user".into(), name.clone());
        }
        if let Some((name, gid)) = &self.group
            && status.gid() != gid.as_raw()
        {
            changes.insert("group".into(), name.clone());
        }
        changes
    }

    /// What is told of a file that is new: Salt starts from a file of root's that only root reads, and
    /// gives one from a source its mode in any case.
    pub fn on_new_file(&self, from_source: bool) -> Map {
        let mut changes = Map::new();
        let names = [
            ("user", self.user.as_ref().filter(|(_, uid)| *uid != Uid::effective()).map(|(name, _)| name)),
            ("group", self.group.as_ref().filter(|(_, gid)| *gid != Gid::effective()).map(|(name, _)| name)),
        ];
        for (key, name) in names {
            if let Some(name) = name {
                changes.insert(key.into(), name.clone());
            }
        }
        let mode = self.mode.or(from_source.then_some(0o644));
        if let Some(mode) = mode.filter(|mode| *mode != 0o600) {
            changes.insert("mode".into(), show_mode(mode).into());
        }
        changes
    }

    /// Whether a link, not what it leads to, has another owner.
    pub fn link_differs(&self, path: &Path) -> bool {
        let Ok(status) = std::fs::symlink_metadata(path) else { return false };
        self.user.as_ref().is_some_and(|(_, uid)| status.uid() != uid.as_raw())
            || self.group.as_ref().is_some_and(|(_, gid)| status.gid() != gid.as_raw())
    }

    /// Gives a link its owner. Says whether it had another one.
    pub fn apply_to_link(&self, path: &Path) -> Result<bool, String> {
        let differs = self.link_differs(path);
        if differs {
            let uid = self.user.as_ref().map(|(_, uid)| uid.as_raw());
            let gid = self.group.as_ref().map(|(_, gid)| gid.as_raw());
            std::os::unix::fs::lchown(path, uid, gid)
                .map_err(|error| format!("Failed to change {}: {error}", path.display()))?;
        }
        Ok(differs)
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.mode.is_none() && self.user.is_none() && self.group.is_none()
    }

    /// Makes it so, and says what changed.
    pub fn apply(&self, path: &Path) -> Result<Map, String> {
        let changes = self.differences(path);
        let failed = |error: std::io::Error| format!("Failed to change {}: {error}", path.display());
        if changes.contains_key("user") || changes.contains_key("group") {
            let uid = self.user.as_ref().map(|(_, uid)| uid.as_raw());
            let gid = self.group.as_ref().map(|(_, gid)| gid.as_raw());
            std::os::unix::fs::chown(path, uid, gid).map_err(failed)?;
        }
        // After the owner: a change of owner takes bits away.
        if let Some(mode) = self.mode {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).map_err(failed)?;
        }
        Ok(changes)
    }
}

/// The mode of a folder for files of this mode: who may read them may look into it.
pub(super) fn folder_mode(mode: u32) -> u32 {
    mode | ((mode & 0o444) >> 2)
}

/// Makes a folder and those that it is in; the ones that are new get this mode.
pub(super) fn make_folders(folder: &Path, mode: Option<u32>) -> std::io::Result<()> {
    let new: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    std::fs::create_dir_all(folder)?;
    for folder in new {
        if let Some(mode) = mode {
            std::fs::set_permissions(folder, PermissionsExt::from_mode(mode))?;
        }
    }
    Ok(())
}

/// The name of a user's own group, or nothing for somebody who is not known.
pub(super) fn primary_group(user: &Value) -> Value {
    let user = User::from_name(&user.to_string()).ok().flatten();
    let group = user.and_then(|user| Group::from_gid(user.gid).ok().flatten());
    group.map_or(Value::Nil, |group| group.name.into())
}

/// Octal digits, as text or as the number that YAML makes of them.
pub(super) fn parse_mode(mode: &Value) -> Option<u32> {
    let text = mode.to_string();
    let digits = text.trim().trim_start_matches("0o");
    u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o7777)
}

/// Four octal digits.
pub(super) fn show_mode(mode: u32) -> String {
    format!("{mode:04o}")
}
