//! The options that distinguish an active mount from the desired one.

use brine_host::accounts::Accounts;

use super::mounted::Desired;
use crate::mount::active::{Mount, numbered};

/// Options that `mount` accepts but the system does not show.
const INVISIBLE: [&str; 23] = [
    "_netdev",
    "actimeo",
    "bg",
    "comment",
    "defaults",
    "delay_connect",
    "direct-io-mode",
    "intr",
    "loop",
    "nointr",
    "nobootwait",
    "nofail",
    "password",
    "reconnect",
    "retry",
    "soft",
    "auto",
    "users",
    "bind",
    "nonempty",
    "transform_symlinks",
    "port",
    "backup-volfile-servers",
];

/// Options that the system shows, if at all, without their values.
const INVISIBLE_KEYS: [&str; 8] =
    ["actimeo", "comment", "credentials", "direct-io-mode", "password", "port", "retry", "secretfile"];

/// Converts the unit of an option such as `size=2m` to kilobytes, as the kernel shows it.
fn in_kilobytes(opt: &str) -> Option<String> {
    let size = opt.strip_prefix("size=")?;
    let (digits, unit) = size.split_at_checked(size.len().checked_sub(1)?)?;
    let factor = match unit {
        "k" => 1,
        "m" => 1024,
        "g" => 1024 * 1024,
        _ => return None,
    };
    Some(format!("size={}k", digits.parse::<u64>().ok()?.checked_mul(factor)?))
}

/// Returns the desired options that the active mount does not have, except those that the system never shows.
pub(super) fn differing(desired: &Desired, mount: &Mount) -> Vec<String> {
    let accounts = Accounts::read();
    let active: Vec<String> = mount.opts.iter().chain(&mount.superopts).cloned().collect();
    let sizes: Vec<String> = active.iter().filter_map(|opt| in_kilobytes(opt)).collect();
    let own = desired.ignore_fs_keys.get(desired.fstype.as_str()).map(crate::mount::options);
    let ignored = |key: &str| match &own {
        Some(own) => own.iter().any(|own| own == key),
        None => desired.fstype == "ramfs" && key == "size",
    };
    let has = |list: &[&str], more: &[String], opt: &str| list.contains(&opt) || more.iter().any(|more| more == opt);
    let mut differing = Vec::new();
    for opt in &desired.opts {
        let mut opt = match (desired.translate.get(opt.as_str()), opt.as_str()) {
            (Some(other), _) => other.to_string(),
            (None, "tcp") => "proto=tcp".into(),
            (None, "udp") => "proto=udp".into(),
            (None, opt) => opt.to_owned(),
        };
        let key = opt.split('=').next().unwrap_or_default().to_owned();
        if has(&INVISIBLE_KEYS, &desired.invisible_keys, &key) || ignored(&key) {
            continue;
        }
        if let (Some(size), false) = (in_kilobytes(&opt), sizes.is_empty()) {
            differing.extend((!sizes.contains(&size)).then_some(size));
            continue;
        }
        // In-memory file systems show their other options in another form, so these are not compared.
        if !sizes.is_empty() {
            continue;
        }
        if desired.fstype == "cifs" && key == "user" {
            opt = opt.replacen("user", "username", 1);
        }
        let opt = numbered(&in_kilobytes(&opt).unwrap_or(opt), &accounts);
        if !active.contains(&opt) && !has(&INVISIBLE, &desired.invisible, &opt) {
            differing.push(opt);
        }
    }
    differing
}

#[cfg(test)]
mod tests;
