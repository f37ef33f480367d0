//! The batches of `salt -b`, observed by the events that it publishes, for `batch.status`, `batch.list_active` and
//! `batch.stop`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use brine_bus::{Filter, Start};
use brine_event::{Event, FROM};
use brine_value::{FromValue, Map, Value};
use brine_wire::PublishRequest;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::Jobs;

/// The maximum number of batches.
const CAPACITY: usize = 1000;

/// The batches of `salt -b` by jid, each with the state of its latest event.
#[derive(Default)]
pub struct Observed(Mutex<IndexMap<String, State>>);

/// A batch as its events report it.
#[derive(Debug, Clone)]
pub struct State {
    fields: Map,
    /// Whether the batch has ended.
    ended: bool,
}

impl Observed {
    /// Records an event of a batch. Events of the master's own batches are ignored.
    fn take(&self, event: &Event) {
        let parts: Vec<&str> = event.tag().split('/').collect();
        let [_, _, jid, word @ ("new" | "progress" | "complete" | "halted")] = parts[..] else { return };
        let mut data = event.data();
        if data.contains_key(FROM) {
            return;
        }
        let Some(Value::Map(fields)) = data.shift_remove("state") else { return };
        let mut all = self.0.lock();
        // Each event uses a separate connection, so an earlier event may arrive after the last one.
        if all.get(jid).is_some_and(|batch| batch.ended) {
            return;
        }
        all.insert(jid.to_owned(), State { fields, ended: matches!(word, "complete" | "halted") });
        while all.len() > CAPACITY {
            let oldest = all.values().position(|state| state.ended).unwrap_or(0);
            all.shift_remove_index(oldest);
        }
    }

    /// Returns a batch.
    pub fn get(&self, jid: &str) -> Option<State> {
        self.0.lock().get(jid).cloned()
    }

    /// Returns a batch if it is running.
    pub fn active_one(&self, jid: &str) -> Option<State> {
        self.get(jid).filter(|state| !state.ended)
    }

    /// Returns the running batches.
    pub fn active(&self) -> Vec<State> {
        self.0.lock().values().filter(|state| !state.ended).cloned().collect()
    }
}

impl State {
    /// Returns the summary for `batch.status`.
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

    /// Returns a request that kills the job on the minions that run it.
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

/// Observes the batches of `salt -b` until `shutdown`.
pub async fn observe(jobs: Arc<Jobs>, shutdown: CancellationToken) {
    let mut events = match jobs.events.bus.subscribe(Filter::prefix("salt/batch/"), Start::Now) {
        Ok(events) => events,
        Err(error) => return tracing::error!(%error, "subscribing to events of batches failed"),
    };
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => jobs.batches.observed.take(&event),
                None => return,
            },
            () = shutdown.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests;
