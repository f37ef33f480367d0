//! Modes and owners of files.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use brine_context::StateContext;
use brine_function::Args;
use brine_system::files::{self, Links};
use brine_system::user_files;
use brine_value::{Map, Value};
use nix::unistd::{Gid, Group, Uid, User};

/// The arguments of states that set the owner of a file.
#[derive(Args)]
pub struct OwnerArgs {
    /// Name or id of the owner.
    #[default]
    pub(crate) user: Value,
    /// Name or id of the owning group.
    #[default]
    pub(crate) group: Value,
}

/// Desired mode and owner of a file; unset fields are left unchanged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attributes {
    pub mode: Option<u32>,
    /// Whether the mode is that of the source: `keep`.
    pub keep_mode: bool,
    user: Option<(Value, Option<Uid>)>,
    group: Option<(Value, Option<Gid>)>,
}

impl Attributes {
    /// Parses a state's arguments. The error is Salt's message.
    pub fn new(mode: &Value, user: &Value, group: &Value) -> Result<Self, String> {
        let attributes = Self::with_unknown(mode, user, group)?;
        if let Some((name, None)) = &attributes.user {
            return Err(format!("User {name} is not available "));
        }
        if let Some((name, None)) = &attributes.group {
            return Err(format!("Group {name} is not available"));
        }
        Ok(attributes)
    }

    /// Parses a state's arguments as [`Attributes::new`] does. In test mode, a missing owner is accepted: an earlier
    /// state may create it.
    pub fn from_state(context: &StateContext, mode: &Value, user: &Value, group: &Value) -> Result<Self, String> {
        if context.test { Self::with_unknown(mode, user, group) } else { Self::new(mode, user, group) }
    }

    fn with_unknown(mode: &Value, user: &Value, group: &Value) -> Result<Self, String> {
        let keep_mode = mode.as_str().is_some_and(|mode| mode.eq_ignore_ascii_case("keep"));
        let mut attributes = Attributes { keep_mode, ..Attributes::default() };
        if mode.is_truthy() && !attributes.keep_mode {
            attributes.mode = Some(parse_mode(mode).ok_or_else(|| format!("Invalid mode: {mode}"))?);
        }
        if user.is_truthy() {
            let name = user.to_string();
            let uid = match name.parse() {
                Ok(number) => Some(Uid::from_raw(number)),
                Err(_) => User::from_name(&name).ok().flatten().map(|user| user.uid),
            };
            attributes.user = Some((user.clone(), uid));
        }
        if group.is_truthy() {
            let name = group.to_string();
            let gid = match name.parse() {
                Ok(number) => Some(Gid::from_raw(number)),
                Err(_) => Group::from_name(&name).ok().flatten().map(|group| group.gid),
            };
            attributes.group = Some((group.clone(), gid));
        }
        Ok(attributes)
    }

    /// Returns the pending changes.
    pub fn differences(&self, path: &Path) -> Map {
        self.differences_of(path, true)
    }

    /// Returns the pending changes as [`Attributes::differences`]; for a link that is not followed, those of the link,
    /// which has no mode.
    pub fn differences_of(&self, path: &Path, follow: bool) -> Map {
        let status = if follow { std::fs::metadata(path) } else { std::fs::symlink_metadata(path) };
        status.map_or_else(|_| Map::new(), |status| self.differences_from(&status))
    }

    /// Returns the pending changes of a file with this status.
    pub fn differences_from(&self, status: &Metadata) -> Map {
        let mut changes = Map::new();
        if let Some(mode) = self.mode.filter(|mode| !status.is_symlink() && status.mode() & 0o7777 != *mode) {
            changes.insert("mode".into(), show_mode(mode).into());
        }
        if let Some((name, uid)) = &self.user
            && Some(Uid::from_raw(status.uid())) != *uid
        {
            changes.insert("user".into(), name.clone());
        }
        if let Some((name, gid)) = &self.group
            && Some(Gid::from_raw(status.gid())) != *gid
        {
            changes.insert("group".into(), name.clone());
        }
        changes
    }

    /// Returns the changes to report for a new file: Salt compares with a file owned by root with mode 0600, and always
    /// sets the mode of a file with a source.
    pub fn on_new_file(&self, from_source: bool) -> Map {
        let mut changes = Map::new();
        let names = [
            ("user", self.user.as_ref().filter(|(_, uid)| *uid != Some(Uid::effective())).map(|(name, _)| name)),
            ("group", self.group.as_ref().filter(|(_, gid)| *gid != Some(Gid::effective())).map(|(name, _)| name)),
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

    /// Whether the owner of a link itself differs.
    pub fn link_differs(&self, path: &Path) -> bool {
        !self.differences_of(path, false).is_empty()
    }

    /// Sets the owner of a link. Returns whether it had another one.
    pub fn apply_to_link(&self, path: &Path) -> Result<bool, String> {
        Ok(!self.apply_to(path, false)?.is_empty())
    }

    /// Returns the attributes without the mode.
    pub fn owner_alone(&self) -> Self {
        Attributes { mode: None, keep_mode: false, user: self.user.clone(), group: self.group.clone() }
    }

    /// Returns the attributes for writing a file.
    pub fn to_write(&self) -> files::Attributes {
        let (uid, gid) = self.owner();
        files::Attributes { uid, gid, mode: self.mode }
    }

    /// Returns the attributes for creating directories: this owner, with another mode.
    pub fn of_directories(&self, mode: Option<u32>) -> files::Attributes {
        files::Attributes { mode, ..self.to_write() }
    }

    /// Returns the desired UID and GID.
    fn owner(&self) -> (Option<u32>, Option<u32>) {
        let uid = self.user.as_ref().and_then(|(_, uid)| *uid);
        let gid = self.group.as_ref().and_then(|(_, gid)| *gid);
        (uid.map(Uid::as_raw), gid.map(Gid::as_raw))
    }

    /// Whether no attribute is set.
    pub fn is_empty(&self) -> bool {
        self.mode.is_none() && self.user.is_none() && self.group.is_none()
    }

    /// Applies the attributes and returns the changes.
    pub fn apply(&self, path: &Path) -> Result<Map, String> {
        self.apply_to(path, true)
    }

    /// Applies the attributes as [`Attributes::apply`]; for a link that is not followed, to the link.
    pub fn apply_to(&self, path: &Path, follow: bool) -> Result<Map, String> {
        let changes = self.differences_of(path, follow);
        let failed = |error: std::io::Error| format!("Failed to change {}: {error}", path.display());
        let is_link = !follow && path.is_symlink();
        let links = if follow { Links::Follow } else { Links::Keep };
        if changes.contains_key("user") || changes.contains_key("group") {
            let (uid, gid) = self.owner();
            user_files::set_owner(path, uid, gid, links).map_err(failed)?;
        }
        // The mode comes after the owner: changing the owner clears the setuid and setgid bits.
        let sets_mode = changes.contains_key("user") || changes.contains_key("group") || changes.contains_key("mode");
        if let Some(mode) = self.mode.filter(|_| !is_link && sets_mode) {
            user_files::set_mode(path, mode, links).map_err(failed)?;
        }
        Ok(changes)
    }
}

/// Returns the mode of a directory for files of this mode: everyone who may read gets the search permission (`x`), too.
pub(super) fn directory_mode(mode: u32) -> u32 {
    mode | ((mode & 0o444) >> 2)
}

/// Returns the name of a user's primary group, or `None` for an unknown user.
pub(super) fn primary_group(user: &Value) -> Value {
    let user = User::from_name(&user.to_string()).ok().flatten();
    let group = user.and_then(|user| Group::from_gid(user.gid).ok().flatten());
    group.map_or(Value::Nil, |group| group.name.into())
}

/// Parses octal digits, as a string or as the integer that YAML parses them into.
pub(super) fn parse_mode(mode: &Value) -> Option<u32> {
    let text = mode.to_string();
    let digits = text.trim().trim_start_matches("0o");
    u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o7777)
}

/// Formats a mode as four octal digits.
pub(super) fn show_mode(mode: u32) -> String {
    format!("{mode:04o}")
}
