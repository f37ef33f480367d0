//! The keys of a daemon, and on a master those of its minions.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use brine_crypt::{PrivateKey, PublicKey};
use brine_ids::MinionId;
use brine_system::user_files;
use sha2::{Digest, Sha256};

use crate::daemon::Daemon;
use crate::finding::{Finding, Repair, Role, quoted};
use crate::installation::Installation;
use crate::kinds;
use crate::places::not_seen;

/// The maximum number of keys of minions that are read.
const MAX_KEYS: usize = 100_000;
/// The maximum size of a key file, in bytes.
const MAX_KEY: u64 = 64 << 10;
/// The number of ids that a finding names.
const NAMED: usize = 10;
/// The time by which a file may be newer than now: clocks are corrected by small steps.
const FUTURE: Duration = Duration::from_secs(300);

/// Reads a key file within a bound.
fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = user_files::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    file.take(MAX_KEY).read_to_string(&mut text)?;
    Ok(text)
}

/// Examines the keys of the daemon itself.
pub fn own(installation: &Installation, daemon: &Daemon) -> Vec<Finding> {
    let role = installation.role;
    let path = &installation.private_key;
    let mut findings = Vec::new();
    let damaged = |path: &Path, why: String, mend: String| {
        Finding::new(&kinds::KEY_UNREADABLE, role, format!("{} is not usable", quoted(path)))
            .at(path.display())
            .because(why)
            .mended_by(mend)
    };
    let other_side = match role {
        Role::Master => "restore it from a backup; a new key has to be trusted by every minion",
        Role::Minion | Role::Api | Role::Syndic => "the next start makes a new key, which the master has to accept",
    };
    let aside = |path: &Path| {
        format!("mv {0} {0}.old && {1}   # {other_side}", quoted(path), daemon.start_command(installation))
    };
    match read(path) {
        Ok(text) => {
            let parsed = PrivateKey::from_pem_with(&text, installation.key_pass.as_deref());
            match parsed {
                Ok(key) => findings.extend(pair(role, path, &key, daemon, installation)),
                Err(error) => findings.push(damaged(path, error.to_string(), aside(path))),
            }
            findings.extend(from_the_future(role, path));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // A new installation has no key; one that others know needs it.
            let is_known = match role {
                Role::Master => {
                    let mut keys = fs::read_dir(installation.pki_dir.join("minions")).into_iter().flatten();
                    keys.next().is_some()
                }
                Role::Minion | Role::Api | Role::Syndic => installation.pki_dir.join("minion_master.pub").exists(),
            };
            if is_known {
                let why = "it is missing, and the other side knows it".to_owned();
                findings.push(damaged(path, why, format!("# restore {}: {other_side}", path.display())));
            }
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => findings.push(not_seen(role, path)),
        Err(error) => findings.push(damaged(path, error.to_string(), aside(path))),
    }
    let masters = installation.pki_dir.join("minion_master.pub");
    if role == Role::Minion
        && let Ok(text) = read(&masters)
        && let Err(error) = PublicKey::from_pem(&text)
    {
        let mend = format!("rm {}   # the master's key is then trusted as at the first start", quoted(&masters));
        findings.push(damaged(&masters, error.to_string(), mend));
    }
    findings
}

/// Finds a public key beside the private one that is not its other half: fingerprints that people compare are then
/// those of another key.
fn pair(role: Role, path: &Path, key: &PrivateKey, daemon: &Daemon, installation: &Installation) -> Option<Finding> {
    let public = path.with_extension("pub");
    let text = read(&public).ok()?;
    let is_other = PublicKey::from_pem(&text).map_or(true, |other| other != key.public());
    is_other.then(|| {
        Finding::new(&kinds::KEY_UNREADABLE, role, format!("{} is not the public half of the key", quoted(&public)))
            .at(public.display())
            .because(format!("the fingerprint of {} is {}", path.display(), key.public().fingerprint()))
            .mended_by(format!("rm {} && {}", quoted(&public), daemon.restart_command(installation)))
    })
}

/// Finds a file that is newer than now.
fn from_the_future(role: Role, path: &Path) -> Option<Finding> {
    let changed = fs::metadata(path).and_then(|status| status.modified()).ok()?;
    let ahead = changed.duration_since(SystemTime::now()).ok().filter(|ahead| *ahead > FUTURE)?;
    Some(
        Finding::new(&kinds::CLOCK_DIFFERS, role, "the clock of this host is behind")
            .at(path.display())
            .because(format!("this file was changed {} s in the future", ahead.as_secs()))
            .mended_by("timedatectl set-ntp true; timedatectl"),
    )
}

/// The keys of a state: the id and the digest of each, or why it cannot be read.
struct Listed {
    state: &'static str,
    keys: Vec<(String, PathBuf, Result<[u8; 32], String>)>,
    /// The age of the oldest.
    oldest: Option<Duration>,
}

fn list(installation: &Installation, state: &'static str) -> Result<Listed, Box<Finding>> {
    let directory = installation.pki_dir.join(state);
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(Box::new(not_seen(installation.role, &directory)));
        }
        Err(_) => return Ok(Listed { state, keys: Vec::new(), oldest: None }),
    };
    let mut listed = Listed { state, keys: Vec::new(), oldest: None };
    for entry in entries.flatten().take(MAX_KEYS) {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Other names are not keys of minions.
        if name.starts_with('.') || name.parse::<MinionId>().is_err() {
            continue;
        }
        let age = entry.metadata().and_then(|status| status.modified()).ok().and_then(|time| time.elapsed().ok());
        listed.oldest = listed.oldest.max(age);
        let path = entry.path();
        let key = read(&path).map_err(|error| error.to_string()).and_then(|text| {
            let key = PublicKey::from_pem(&text).map_err(|error| error.to_string())?;
            Ok(Sha256::digest(key.to_pem().as_bytes()).into())
        });
        listed.keys.push((name, path, key));
    }
    listed.keys.sort();
    Ok(listed)
}

/// Returns ids for a message, and how many there are besides.
pub fn named(ids: &[String]) -> String {
    let names: Vec<&str> = ids.iter().take(NAMED).map(String::as_str).collect();
    match ids.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Returns ids as the argument of `salt-key`, quoted for a shell.
fn pattern(ids: &[String]) -> String {
    quoted(Path::new(&ids.iter().take(NAMED).cloned().collect::<Vec<_>>().join(",")))
}

/// Formats a duration.
pub fn shown_age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// Examines the keys of a master's minions.
pub fn of_minions(installation: &Installation, daemon: &Daemon) -> Vec<Finding> {
    let role = installation.role;
    let options = installation.options();
    let mut findings = Vec::new();
    let mut listed = Vec::new();
    for state in ["minions", "minions_pre", "minions_denied"] {
        match list(installation, state) {
            Ok(keys) => listed.push(keys),
            Err(unseen) => findings.push(*unseen),
        }
    }
    let ids = |one: &Listed| one.keys.iter().map(|(id, ..)| id.clone()).collect::<Vec<_>>();
    for one in &listed {
        let age = one.oldest.map_or_else(String::new, |age| format!("; the oldest waits for {}", shown_age(age)));
        let (ids, place) = (ids(one), installation.pki_dir.join(one.state).display().to_string());
        match one.state {
            _ if ids.is_empty() => {}
            "minions_denied" => findings.push(
                Finding::new(&kinds::KEY_DENIED, role, format!("another key claims the id of {}", named(&ids)))
                    .at(place)
                    .because("the minion was reinstalled, or its image was cloned, or somebody pretends to be it")
                    .mended_by(format!(
                        "salt-key{options} -f {0}; salt-key{options} -d {0}   # then `salt-key -a` once it has connected",
                        pattern(&ids)
                    )),
            ),
            "minions_pre" => findings.push(
                Finding::new(&kinds::KEYS_PENDING, role, format!("the keys of {} wait", named(&ids)))
                    .at(place)
                    .because(format!("nobody has accepted them{age}"))
                    .mended_by(format!("salt-key{options} -f {0} && salt-key{options} -a {0}", pattern(&ids))),
            ),
            _ => {}
        }
    }
    let accepted = listed.iter().find(|one| one.state == "minions");
    findings.extend(accepted.map(|one| files(role, one, &options, daemon)).unwrap_or_default());
    findings
}

/// Examines the accepted keys: damaged files, modes, and one key under several ids.
fn files(role: Role, accepted: &Listed, options: &str, daemon: &Daemon) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut by_key: BTreeMap<[u8; 32], Vec<String>> = BTreeMap::new();
    for (id, path, key) in &accepted.keys {
        match key {
            Ok(digest) => by_key.entry(*digest).or_default().push(id.clone()),
            Err(error) => findings.push(
                Finding::new(&kinds::KEYS_UNREADABLE, role, format!("the key of {id} is not usable"))
                    .at(path.display())
                    .because(error)
                    .mended_by(format!("salt-key{options} -d {}", pattern(std::slice::from_ref(id)))),
            ),
        }
        let Ok(status) = fs::symlink_metadata(path).map(|status| (status.mode() & 0o7777, status.uid())) else {
            continue;
        };
        let (mode, uid) = status;
        if mode & 0o022 != 0 {
            findings.push(
                Finding::new(&kinds::KEY_MODE, role, format!("others can exchange the key of {id}"))
                    .at(path.display())
                    .because(format!("it has the mode {mode:04o}"))
                    .repaired_by(Repair::Mode(path.clone(), mode & !0o022 & 0o777)),
            );
        }
        if daemon.owner.is_some_and(|owner| owner.0 != uid && uid != 0) {
            findings.push(
                Finding::new(&kinds::KEY_OWNER, role, format!("the key of {id} belongs to user {uid}"))
                    .at(path.display())
                    .because("that user can exchange it")
                    .owned_by(path, daemon),
            );
        }
    }
    for ids in by_key.into_values().filter(|ids| ids.len() > 1) {
        findings.push(
            Finding::new(&kinds::KEYS_DOUBLED, role, format!("{} have the same key", named(&ids)))
                .at("accepted keys")
                .because("these minions are clones of one image, and each can pretend to be the other")
                .mended_by(format!(
                    "salt-key{options} -d {}   # and on each clone: rm /etc/salt/pki/minion/minion.*; systemctl restart brine-minion",
                    pattern(ids.get(1..).unwrap_or_default())
                )),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_named_within_a_bound() {
        let ids: Vec<String> = (0..12).map(|n| format!("m{n}")).collect();
        assert_eq!(named(&ids[..2]), "m0, m1");
        assert!(named(&ids).ends_with("m9 and 2 more"));
        assert_eq!(pattern(&["a,b".to_owned(), "c d".to_owned()]), "'a,b,c d'");
        assert_eq!(shown_age(Duration::from_secs(7300)), "2 h");
    }
}
