//! Batches that `salt -b` runs itself: known from the events that it publishes, so that `batch.status`, `batch.list_active`
//! and `batch.stop` find them, too.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use brine_bus::{Filter, Start};
use brine_event::{Event, FROM};
use brine_value::{FromValue, Map, Value};
use brine_wire::PublishRequest;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::Shared;

/// How many batches are remembered.
const MOST: usize = 1000;

/// The batches of `salt -b`, by job id: the state that the last event told.
#[derive(Default)]
pub(crate) struct Followed(Mutex<IndexMap<String, State>>);

/// A batch as its events tell it.
#[derive(Debug, Clone)]
pub(crate) struct State {
    fields: Map,
    /// Whether no more events come.
    ended: bool,
}

impl Followed {
    /// Takes an event about a batch; those of batches that the master runs hold no state.
    fn take(&self, event: &Event) {
        let parts: Vec<&str> = event.tag().split('/').collect();
        let [_, _, jid, word @ ("new" | "progress" | "complete" | "halted")] = parts[..] else { return };
        let mut data = event.data();
        if data.contains_key(FROM) {
            return;
        }
        let Some(Value::Map(fields)) = data.shift_remove("state") else { return };
        let mut all = self.0.lock();
        // Events come over a connection each: one of before the end may come after it.
        if all.get(jid).is_some_and(|known| known.ended) {
            return;
        }
        all.insert(jid.to_owned(), State { fields, ended: matches!(word, "complete" | "halted") });
        while all.len() > MOST {
            let oldest = all.values().position(|state| state.ended).unwrap_or(0);
            all.shift_remove_index(oldest);
        }
    }

    /// Returns a batch.
    pub fn get(&self, jid: &str) -> Option<State> {
        self.0.lock().get(jid).cloned()
    }

    /// Returns a batch if it runs.
    pub fn active_one(&self, jid: &str) -> Option<State> {
        self.get(jid).filter(|state| !state.ended)
    }

    /// Returns those that run.
    pub fn active(&self) -> Vec<State> {
        self.0.lock().values().filter(|state| !state.ended).cloned().collect()
    }
}

impl State {
    /// What `batch.status` returns.
    pub fn summary(&self) -> Map {
        let field = |name: &str| self.fields.get(name).cloned().unwrap_or_default();
        let count = |name: &str| match self.fields.get(name) {
            Some(Value::List(all)) => all.len(),
            Some(Value::Map(all)) => all.len(),
            _ => 0,
        };
        let names = ["jid", "fun", "tgt", "tgt_type", "batch_size", "halted", "halted_reason", "driver", "user"];
        let mut summary: Map = names.iter().map(|name| ((*name).into(), field(name))).collect();
        for (name, of) in [
            ("total", "all_minions"),
            ("completed", "done"),
            ("active", "active"),
            ("pending", "pending"),
            ("failed", "failed"),
        ] {
            summary.insert(name.into(), count(of).into());
        }
        for name in ["created", "last_progress"] {
            summary.insert(name.into(), field(name));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let age = f64::from_value(&field("last_progress")).map(|last| now - last);
        summary.insert("age_seconds".into(), age.map_or(Value::Nil, Value::from));
        summary
    }

    /// Ends its job on those that work on it.
    pub fn kill_request(&self, user: &str) -> PublishRequest {
        let active = self.fields.get("active").and_then(Value::as_map);
        PublishRequest {
            tgt: active.into_iter().flat_map(Map::keys).cloned().collect(),
            tgt_type: "list".to_owned(),
            arg: self.fields.get("jid").cloned().into_iter().collect(),
            ..PublishRequest::new("", "saltutil.kill_job", user)
        }
    }
}

/// Follows the batches of `salt -b`, until `shutdown`.
pub(crate) async fn follow(shared: Arc<Shared>, shutdown: CancellationToken) {
    let mut events = match shared.bus.subscribe(Filter::prefix("salt/batch/"), Start::Now) {
        Ok(events) => events,
        Err(error) => return tracing::error!(%error, "subscribing to events of batches failed"),
    };
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => shared.batches.followed.take(&event),
                None => return,
            },
            () = shutdown.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn a_batch_is_known_from_its_events() {
        let followed = Followed::default();
        let state = map! {
            "jid" => "1", "fun" => "test.ping", "all_minions" => list!["a", "b"], "done" => map! {"a" => map! {}},
            "active" => map! {"b" => 1.0}, "pending" => list![], "failed" => map! {}, "driver" => "cli",
        };
        let take = |jid: &str, word: &str, body: Map| {
            followed.take(&Event::from_map(&format!("salt/batch/{jid}/{word}"), &body).unwrap());
        };
        take("1", "new", map! {"jid" => "1", "state" => state.clone()});
        take("2", "new", map! {"jid" => "2", "total_minions" => 3});
        let active = followed.active();
        assert_eq!(active.len(), 1);
        let summary = active[0].summary();
        for (name, is) in [("total", 2), ("completed", 1), ("active", 1), ("pending", 0), ("failed", 0)] {
            assert_eq!(summary.get(name), Some(&is.into()), "{name}");
        }
        let kill = active[0].kill_request("root");
        assert_eq!((kill.tgt, kill.arg), (list!["b"], vec!["1".into()]));
        take("1", "complete", map! {"jid" => "1", "state" => state.clone()});
        take("1", "progress", map! {"jid" => "1", "state" => state});
        assert!(followed.active().is_empty() && followed.active_one("1").is_none() && followed.get("1").is_some());
    }

    #[test]
    fn only_so_many_are_remembered() {
        let followed = Followed::default();
        for n in 0..MOST + 10 {
            let body = map! {"state" => map! {"jid" => n}};
            followed.take(&Event::from_map(&format!("salt/batch/{n}/new"), &body).unwrap());
        }
        assert_eq!((followed.active().len(), followed.get("9").is_none()), (MOST, true));
    }
}
