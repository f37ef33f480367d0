//! The desired properties of a user, and their differences from the current ones.

use std::collections::BTreeSet;
use std::path::Path;

use brine_host::accounts::{Account, Accounts};
use brine_value::{Map, Value};

use crate::shadow::{DEFAULT_HASH, Shadow};

/// Subfields of GECOS, in order.
pub const GECOS: [&str; 5] = ["fullname", "roomnumber", "workphone", "homephone", "other"];

/// Desired properties of a user; unset ones are left unchanged.
#[derive(Default, Clone)]
pub struct Desired {
    pub uid: Value,
    pub gid: Value,
    pub usergroup: Option<bool>,
    pub groups: Option<Vec<String>>,
    /// The groups of `optional_groups` that exist.
    pub optional_groups: Vec<String>,
    pub remove_groups: bool,
    pub home: Option<String>,
    pub createhome: bool,
    pub persist_home: bool,
    /// Hash of the password.
    pub password: Option<String>,
    pub enforce_password: bool,
    pub empty_password: bool,
    pub password_lock: Option<bool>,
    pub shell: Option<String>,
    pub unique: bool,
    pub system: bool,
    pub gecos: [Option<String>; 5],
    pub date: Value,
    pub mindays: Value,
    pub maxdays: Value,
    pub inactdays: Value,
    pub warndays: Value,
    pub expire: Value,
    pub nologinit: bool,
    pub allow_uid_change: bool,
    pub allow_gid_change: bool,
    pub local: bool,
}

impl Desired {
    /// Returns the differences in Salt's order, or the error of a change that is not allowed.
    pub fn differences(&self, user: &Account, accounts: &Accounts, shadow: Option<&Shadow>) -> Result<Map, String> {
        let mut changes = Map::new();
        let mut differs = |key: &str, value: Value| {
            changes.insert(key.into(), value);
        };
        let (uid, gid) = (Value::from(user.uid), Value::from(user.gid));
        if self.uid.is_truthy() && self.uid != uid {
            differs("uid", self.uid.clone());
        }
        let number = accounts.number_of(&self.gid);
        if !self.gid.is_nil() && self.gid != gid && number != Some(user.gid) {
            differs("gid", self.gid.clone());
        }
        if let Some(groups) = self.all_groups(user, accounts) {
            differs("groups", groups.into());
        }
        let home = self.home.as_ref().filter(|home| !home.is_empty());
        if let Some(home) = home.filter(|home| **home != user.home) {
            differs("home", home.into());
        }
        let home = home.unwrap_or(&user.home);
        if self.createhome && !Path::new(home).is_dir() {
            differs("homeDoesNotExist", home.into());
        }
        if let Some(shell) = self.shell.as_ref().filter(|shell| !shell.is_empty() && **shell != user.shell) {
            differs("shell", shell.into());
        }
        self.password_differences(shadow, &mut differs);
        let have: Vec<&str> = user.gecos.splitn(5, ',').collect();
        for (place, (key, desired)) in GECOS.iter().zip(&self.gecos).enumerate() {
            let have = have.get(place).copied().unwrap_or_default();
            if let Some(desired) = desired.as_ref().filter(|desired| *desired != have) {
                differs(key, desired.into());
            }
        }
        let allowed = [("uid", &uid, self.allow_uid_change), ("gid", &gid, self.allow_gid_change)];
        let refused = allowed.iter().filter(|(_, _, allowed)| !allowed).filter_map(|(key, have, _)| {
            let value = changes.get(*key)?;
            Some(format!(
                "- Changing {key} ({have} -> {value}) not permitted, set allow_{key}_change to True to force this \
                 change. Note that this will not change file ownership."
            ))
        });
        let refused: Vec<String> = refused.collect();
        if refused.is_empty() {
            return Ok(changes);
        }
        let list = refused.join("\n");
        Err(format!("Encountered error checking for needed changes. Additional info follows:\n\n{list}"))
    }

    fn password_differences(&self, shadow: Option<&Shadow>, differs: &mut impl FnMut(&str, Value)) {
        let passwd = shadow.map_or("", |shadow| &shadow.passwd);
        let password = self.password.as_ref().filter(|password| !password.is_empty() && !self.empty_password);
        if password.is_some_and(|password| passwd != password) && (self.enforce_password || passwd == DEFAULT_HASH) {
            differs("passwd", super::HIDDEN.into());
        }
        if self.empty_password && !passwd.is_empty() {
            differs("empty_password", true.into());
        }
        let days = |of: fn(&Shadow) -> i64| shadow.map_or("".into(), |shadow| Value::from(of(shadow)));
        for (key, desired, have) in [
            ("date", &self.date, days(|shadow| shadow.lstchg)),
            ("mindays", &self.mindays, days(|shadow| shadow.min)),
            ("maxdays", &self.maxdays, days(|shadow| shadow.max)),
            ("inactdays", &self.inactdays, days(|shadow| shadow.inact)),
            ("warndays", &self.warndays, days(|shadow| shadow.warn)),
        ] {
            if !desired.is_nil() && *desired != have {
                differs(key, desired.clone());
            }
        }
        if self.expire.is_truthy() && self.expire != days(|shadow| shadow.expire) {
            differs("expire", self.expire.clone());
        }
        if let Some(lock) = self.password_lock.filter(|lock| *lock != passwd.starts_with('!')) {
            differs("password_lock", lock.into());
        }
    }

    /// Returns the desired supplementary groups, if they differ from the current ones. The primary group is not
    /// included, nor are its aliases.
    fn all_groups(&self, user: &Account, accounts: &Accounts) -> Option<Vec<String>> {
        let mut have: BTreeSet<String> = accounts.groups_of(&user.name).into_iter().collect();
        let all = have.clone();
        let mut groups: BTreeSet<String> = self.groups.iter().flatten().chain(&self.optional_groups).cloned().collect();
        if !self.remove_groups || self.groups.is_none() && self.optional_groups.is_empty() {
            groups.extend(have.iter().cloned());
        }
        let alike = |name: &str| -> Vec<String> {
            let gid = accounts.group(name).map(|group| group.gid);
            let same = |other: &&String| *other == name || accounts.group(other).map(|group| group.gid) == gid;
            all.iter().filter(same).cloned().chain([name.to_owned()]).collect()
        };
        let name_of =
            |gid: Option<u32>| gid.and_then(|gid| accounts.group_numbered(gid)).map(|group| group.name.clone());
        let own = name_of(if self.gid.is_nil() { Some(user.gid) } else { accounts.number_of(&self.gid) });
        if let Some(own) = &own {
            for name in if have.contains(own) { alike(own) } else { vec![own.clone()] } {
                have.remove(&name);
                groups.remove(&name);
            }
        }
        let former = name_of(Some(user.gid)).filter(|former| Some(former) != own.as_ref());
        if let Some(former) = former.filter(|former| have.contains(former)) {
            let names = alike(&former);
            have.retain(|name| !names.contains(name));
        }
        if have.contains(&user.name) && !groups.contains(&user.name) {
            let names = alike(&user.name);
            have.retain(|name| !names.contains(name));
        }
        let differ: Vec<&String> = if self.remove_groups {
            groups.symmetric_difference(&have).collect()
        } else {
            groups.difference(&have).collect()
        };
        let gid = |name: &String| accounts.group(name).map(|group| group.gid);
        let union: BTreeSet<&String> = groups.union(&have).collect();
        let is_other_name = |name: &String| union.iter().any(|other| *other != name && gid(other) == gid(name));
        let changes = differ.into_iter().any(|name| !is_other_name(name));
        (changes && (!groups.is_empty() || self.remove_groups)).then(|| groups.into_iter().collect())
    }
}
