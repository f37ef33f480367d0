//! The tags that a minion may publish: an allow list per authenticated identity.
//!
//! Below `salt/` a minion may use only tags that contain its own id in the position that Salt defines. Elsewhere all
//! tags are permitted, except for those that the master itself publishes outside of `salt/`. Salt has a deny list
//! instead, which misses `salt/auth`, other minions' start events and more.

use brine_ids::{Jid, MinionId};

/// The master's own tags outside of `salt/`, matched exactly.
const EXACT: &[&str] = &["brine", "salt", "key", "minion", "resource", "syndic", brine_schedule::RETURN];
/// The master's own tag prefixes outside of `salt/`.
const PREFIXES: &[&str] = &["brine/", "key/", "minion/refresh/", "resource/", "syndic/"];

/// Returns whether the minion with this authenticated id may publish an event with this tag.
pub(super) fn may_publish(id: &MinionId, tag: &str) -> bool {
    if !is_plain(tag) {
        return false;
    }
    let Some(below_salt) = tag.strip_prefix("salt/") else {
        let first = tag.split('/').next().unwrap_or_default();
        // Salt up to 3007 announces jobs with the bare jid as tag.
        let is_jid = first.parse::<Jid>().is_ok();
        return !is_jid && !EXACT.contains(&tag) && !PREFIXES.iter().any(|prefix| tag.starts_with(prefix));
    };
    let parts: Vec<&str> = below_salt.split('/').collect();
    let is_jid = |text: &str| text.parse::<Jid>().is_ok();
    match parts[..] {
        ["minion" | "beacon", own, _, ..] => own == id.as_str(),
        // A minion may report its own start and its own progress in a job; returns use a separate request.
        ["job", jid, "start", own] | ["job", jid, "prog", own, ..] | ["state_result", jid, own, ..] => {
            is_jid(jid) && own == id.as_str()
        }
        _ => false,
    }
}

/// Whether a tag is that of a webhook which the engine `webhook` of a minion received. Anyone who reaches an engine can
/// publish such an event, so a minion may, unless the master has an engine of its own.
pub(super) fn is_webhook(tag: &str) -> bool {
    tag.starts_with("salt/engines/hook/") && is_plain(tag)
}

/// Whether a tag means the same to everybody: without control characters, at which programs cut or escape it, and
/// without the parts `.` and `..`, by which a path made of it leads elsewhere.
pub(super) fn is_plain(tag: &str) -> bool {
    !tag.contains(char::is_control) && !tag.split('/').any(|part| matches!(part, "." | ".."))
}

/// Whether an event of a syndic is also published under its original tag, as in Salt: a tag that a lower minion may
/// publish, and that does not concern a minion that this master has accepted.
pub(super) fn is_of_minion_below(syndic: &MinionId, tag: &str, is_own: impl Fn(&MinionId) -> bool) -> bool {
    let id = match tag.split('/').collect::<Vec<_>>()[..] {
        ["salt", "minion" | "beacon", id, ..]
        | ["salt", "job", _, "start" | "prog", id, ..]
        | ["salt", "state_result", _, id, ..] => id.parse(),
        _ => Ok(syndic.clone()),
    };
    id.is_ok_and(|id| may_publish(&id, tag) && (id == *syndic || !is_own(&id)))
}

/// Whether a tag identifies the minion that publishes it, so that the `id` in its body must match.
pub(super) fn names_sender(tag: &str) -> bool {
    tag == "minion_start" || tag.starts_with("salt/")
}

/// Whether this tag announces the start of a syndic with this id.
pub(super) fn is_start_of_syndic(own: &MinionId, tag: &str) -> bool {
    let id = tag.strip_prefix("salt/syndic/").and_then(|rest| rest.strip_suffix("/start"));
    tag == "syndic_start" || id == Some(own.as_str())
}

/// Whether a minion may publish with this `pretag`: a syndic may, below its own tag, if the configuration permits
/// syndics.
pub(super) fn may_prefix(id: &MinionId, pretag: &str, order_masters: bool) -> bool {
    let own = pretag.strip_prefix("syndic/").and_then(|rest| rest.strip_prefix(id.as_str()));
    order_masters && is_plain(pretag) && own.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
