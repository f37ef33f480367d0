//! What minions bring: events and job returns. They are answered once the journal has them.

use brine_core::transport::Worker;
use brine_core::{Map, MinionId, Value, list, metrics};

use crate::Shared;
use crate::job_cache::NOT_KEPT;
use crate::state_errors;

impl Shared {
    /// Whether the journal has what was fired, once it has: minions take that for an answer.
    pub(super) async fn is_kept(&self, fired: Option<u64>, worker: Worker) -> bool {
        let Some(last) = fired else { return false };
        // Others can be handled meanwhile, and go into the journal together.
        drop(worker);
        self.bus.kept(last).await.is_ok()
    }

    /// Fires a minion's events: the number of the last one, or nothing if one is refused.
    pub(super) async fn minion_events(&self, id: &MinionId, events: Vec<(String, Map)>) -> Option<u64> {
        let mut last = 0;
        for (tag, mut body) in events {
            if !may_fire(id, &tag) {
                metrics::EVENTS_REFUSED.add(1);
                tracing::warn!(minion = %id, %tag, "a minion fires an event that only the master or another minion may");
                return None;
            }
            if body.contains_key("cmd") {
                body.insert("id".into(), id.into());
                body.entry("ts".into()).or_insert_with(now);
            }
            let jid = body.get_mut("data").and_then(Value::as_map_mut).and_then(|data| data.shift_remove("_jid"));
            if let Some(Ok(jid)) = jid.map(|jid| jid.to_string().parse()) {
                self.causes.mark(&jid, &mut body);
                body.insert("_jid".into(), (&jid).into());
            }
            match self.bus.fire(&tag, &body).await {
                Ok(seq) => last = seq,
                Err(error) => {
                    tracing::warn!(minion = %id, %tag, %error, "a minion's event is refused");
                    return None;
                }
            }
        }
        Some(last)
    }

    /// Fires a minion's job returns: the number of the last one's event, or nothing if one is refused.
    pub(super) async fn returns(&self, id: &MinionId, loads: Vec<Map>) -> Option<u64> {
        let mut last = 0;
        for mut load in loads {
            let jid = match load.get("jid").and_then(Value::as_str) {
                // A call on the minion itself that asks for a job id.
                Some(word @ ("req" | "nocache")) => {
                    if word == "nocache" {
                        load.insert(NOT_KEPT.into(), true.into());
                    }
                    let arg = load.get("fun_args").cloned().unwrap_or_else(|| list![]);
                    load.entry("arg".into()).or_insert(arg);
                    load.insert("tgt".into(), id.into());
                    load.insert("tgt_type".into(), "glob".into());
                    brine_core::Jid::new()
                }
                Some(text) => match text.parse() {
                    Ok(jid) => jid,
                    Err(error) => {
                        metrics::REQUESTS_REFUSED.add(1);
                        tracing::warn!(minion = %id, %error, "a return is refused");
                        return None;
                    }
                },
                None => {
                    metrics::REQUESTS_REFUSED.add(1);
                    tracing::warn!(minion = %id, "a return without a job id is refused");
                    return None;
                }
            };
            load.retain(|key, _| !matches!(key.as_str(), Some("tok" | "nonce" | "serial" | "load")));
            load.insert("jid".into(), (&jid).into());
            load.insert("id".into(), id.into());
            load.entry("cmd".into()).or_insert_with(|| "_return".into());
            load.entry("ts".into()).or_insert_with(now);
            metrics::RETURNS.add(1);
            self.causes.mark(&jid, &mut load);
            match self.fire_job(&format!("salt/job/{jid}/ret/{id}"), &load).await {
                Ok(seq) => last = seq,
                Err(error) => {
                    tracing::warn!(minion = %id, %jid, %error, "a return is refused");
                    return None;
                }
            }
            for (tag, body) in state_errors::of_return(&load) {
                self.fire(&tag, &body).await;
            }
        }
        Some(last)
    }

    /// Fires returns of minions of a master below this one, as their minions would have brought them. Whether a
    /// minion is such a master nobody can see: `order_masters` says whether there are any.
    pub(super) async fn syndic_returns(&self, id: &MinionId, loads: Vec<Map>) -> Option<u64> {
        let mut last = None;
        if !self.config.order_masters {
            metrics::REQUESTS_REFUSED.add(1);
            tracing::warn!(minion = %id, "returns of other minions are refused: 'order_masters' is off");
            return None;
        }
        for load in loads {
            let of = load.get("id").map(|id| id.to_string().parse::<MinionId>());
            if let Some(Ok(of)) = of {
                last = self.returns(&of, vec![load]).await.or(last);
            } else {
                metrics::REQUESTS_REFUSED.add(1);
                tracing::warn!(minion = %id, "a return of a minion with an impossible name is refused");
            }
        }
        last
    }
}

/// When a message came whose minion does not say when it sent it, in seconds since 1970.
fn now() -> Value {
    jiff::Timestamp::now().as_second().into()
}

/// Whether a minion may fire an event of this tag: what the master says of itself and what another minion
/// says of itself, it may not say in their place.
fn may_fire(id: &MinionId, tag: &str) -> bool {
    const MASTERS: &[&str] = &[
        "salt/auth",
        "salt/key",
        "salt/run/",
        "salt/wheel/",
        "salt/presence/",
        "salt/reactor/",
        "salt/reactors/",
        "salt/master/",
        "salt/batch/",
        "salt/fileserver/",
        "minion/refresh/",
        crate::schedule::RETURN,
    ];
    if tag == "key" || MASTERS.iter().any(|prefix| tag.starts_with(prefix)) {
        return false;
    }
    let mut parts = tag.split('/');
    match (parts.next(), parts.next()) {
        (Some("salt"), Some("minion" | "beacon")) => parts.next() == Some(id.as_str()) && parts.next().is_some(),
        (Some("salt"), Some("state_result")) => parts.nth(1) == Some(id.as_str()),
        // That it begins a job and how far it is, is the minion's own to tell.
        (Some("salt"), Some("job")) => {
            matches!(parts.nth(1), Some("prog" | "start")) && parts.next() == Some(id.as_str())
        }
        _ => true,
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minion_speaks_only_for_itself() {
        let id: MinionId = "web1".parse().unwrap();
        for (tag, may) in [
            ("my/event", true),
            ("minion_start", true),
            ("salt/minion/web1/start", true),
            ("salt/minion/web10/start", false),
            ("salt/minion/db1/start", false),
            ("salt/beacon/web1/load", true),
            ("salt/beacon/db1/load", false),
            ("salt/state_result/20261120235852025555/web1/mine", true),
            ("salt/state_result/20261120235852025555/db1/not/mine", false),
            ("salt/job/20261120235852025555/start/web1", true),
            ("salt/job/20261120235852025555/start/db1", false),
            ("salt/batch/20261120235852025555/new", false),
            ("salt/fileserver/roots/update", false),
            ("salt/reactors/manage/add", false),
            ("key", false),
            ("__schedule_return", false),
            ("salt/job/20261120235852025555/prog/web1/0", true),
            ("salt/job/20261120235852025555/prog/db1/0", false),
            ("salt/job/20261120235852025555/ret/web1", false),
            ("salt/job/20261120235852025555/new", false),
            ("salt/auth", false),
            ("salt/key", false),
            ("salt/run/1/ret", false),
        ] {
            assert_eq!(may_fire(&id, tag), may, "{tag}");
        }
    }
}
