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
    order_masters && own.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minion_publishes_only_under_its_own_id() {
        let id: MinionId = "web1".parse().unwrap();
        for (tag, may) in [
            ("my/event", true),
            ("minion_start", true),
            ("minion_ping", true),
            ("_salt_error", true),
            ("pkg.installed", true),
            ("saltation/x", true),
            ("brine/access/denied", false),
            ("salt/minion/web1/start", true),
            ("salt/minion/web1", false),
            ("salt/minion/web10/start", false),
            ("salt/minion/db1/start", false),
            ("salt/beacon/web1/load/", true),
            ("salt/beacon/db1/load", false),
            ("salt/state_result/20261120235852025555/web1/mine", true),
            ("salt/state_result/20261120235852025555/web1", true),
            ("salt/state_result/20261120235852025555/db1/not/mine", false),
            ("salt/state_result/x/web1/mine", false),
            ("salt/job/20261120235852025555/start/web1", true),
            ("salt/job/20261120235852025555/start/web1/x", false),
            ("salt/job/20261120235852025555/start/db1", false),
            ("salt/job/20261120235852025555/prog/web1/0", true),
            ("salt/job/20261120235852025555/prog/db1/0", false),
            ("salt/job/20261120235852025555/ret/web1", false),
            ("salt/job/20261120235852025555/sub/web1/error/state.sls", false),
            ("salt/job/20261120235852025555/new", false),
            ("salt/job/20261120235852025555/publish", false),
            ("20261120235852025555", false),
            ("20261120235852025555/x", false),
            ("salt/batch/20261120235852025555/new", false),
            ("salt/cloud/web2/created", false),
            ("salt/cluster/peer", false),
            ("salt/fileserver/roots/update", false),
            ("salt/reactors/manage/add", false),
            ("salt/auth", false),
            ("salt/authx", false),
            ("salt/key", false),
            ("salt/run/1/ret", false),
            ("salt/wheel/1/new", false),
            ("salt/presence/present", false),
            ("salt/stats/x", false),
            ("salt/", false),
            ("salt", false),
            ("key", false),
            ("syndic/web1/x", false),
            ("minion/refresh/web1", false),
            ("minion/refresh/db1", false),
            ("resource/refresh/db1", false),
            ("__schedule_return", false),
        ] {
            assert_eq!(may_publish(&id, tag), may, "{tag}");
        }
    }

    #[test]
    fn events_of_minions_below_have_their_own_tags_too() {
        let syndic: MinionId = "s1".parse().unwrap();
        for (tag, is_below) in [
            ("salt/minion/below1/start", true),
            ("salt/minion/own1/start", false),
            ("salt/beacon/below1/load/", true),
            ("salt/beacon/own1/load/", false),
            ("salt/job/20261120235852025555/prog/below1/0", true),
            ("salt/job/20261120235852025555/prog/own1/0", false),
            ("salt/job/20261120235852025555/new", false),
            ("salt/auth", false),
            ("salt/key", false),
            ("salt/run/20261120235852025555/ret", false),
            ("salt/minion/../x", false),
            ("syndic/s2/salt/minion/below1/start", false),
            ("key", false),
            ("my/event", true),
        ] {
            let published = is_of_minion_below(&syndic, tag, |id| id.as_str() == "own1");
            assert_eq!(published, is_below, "{tag}");
        }
    }

    #[test]
    fn a_syndic_reports_its_own_start() {
        let id: MinionId = "s1".parse().unwrap();
        for (tag, is_start) in [
            ("salt/syndic/s1/start", true),
            ("syndic_start", true),
            ("salt/syndic/s2/start", false),
            ("salt/syndic/s1/stop", false),
            ("syndic/s1/start", false),
        ] {
            assert_eq!(is_start_of_syndic(&id, tag), is_start, "{tag}");
        }
    }

    #[test]
    fn only_a_syndic_has_a_prefix_and_only_its_own() {
        let id: MinionId = "s1".parse().unwrap();
        for (pretag, order_masters, may) in [
            ("syndic/s1", true, true),
            ("syndic/s1/syndic/s2", true, true),
            ("syndic/s1", false, false),
            ("syndic/s10", true, false),
            ("syndic/s2", true, false),
            ("salt/job", true, false),
            ("", true, false),
        ] {
            assert_eq!(may_prefix(&id, pretag, order_masters), may, "{pretag}");
        }
    }
}
