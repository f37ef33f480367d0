//! Events of returns. Those that exceed `max_event_size` are stored whole in the job cache before their trimmed events
//! are published.

use std::borrow::Cow;
use std::sync::Arc;

use brine_config::MasterConfig;
use brine_ids::{Jid, MinionId};
use brine_job::trim::{may_exceed, trim, trim_deep};
use brine_job::{Call, Return};
use brine_returners::ReturnerError;
use brine_runtime::executors::Blocking;
use brine_value::levels::{self, MAX_LEVELS};
use brine_value::{Map, msgpack};

use crate::job_cache::{store_return, without_envelope};
use crate::job_events::NOT_CACHED;
use crate::metrics;
use crate::storage::Storage;

/// The value of [`NOT_CACHED`] in the event of a return that is stored whole.
const WHOLE: &str = "large";
/// The maximum number of bytes that the bus adds to a return: stamp, sequence number and sender.
const BUS_OVERHEAD: usize = 512;

/// Stores a return in the job cache and flushes it to disk.
fn store_whole(storage: &Storage, one: &Return) -> Result<(), ReturnerError> {
    store_return(&*storage.job_cache, one)?;
    storage.job_cache.flush()
}

/// Stores the whole return of another member of the cluster. Returns whether it is stored: it must be of this job and
/// minion, and there must be space for it.
pub fn store_of_member(storage: &Storage, jid: &str, id: &str, whole: &[u8]) -> Result<bool, ReturnerError> {
    let Ok(one) = msgpack::unpack_map(whole).map_err(drop).and_then(|map| Return::from_map(map).map_err(drop)) else {
        return Ok(false);
    };
    let is_named = one.jid().as_str() == jid && one.id().as_str() == id;
    if !is_named || !storage.large_returns.reserve(one.jid(), one.id(), whole.len() as u64)? {
        return Ok(false);
    }
    store_whole(storage, &one).map(|()| true)
}

/// Converts returns to events. Those that exceed `max_event_size` are stored whole, and trimmed.
#[derive(Clone)]
pub struct ReturnEvents {
    config: Arc<MasterConfig>,
    storage: Blocking<Storage>,
    /// The id of the master, under which the job cache stores calls of its own functions.
    master: MinionId,
}

impl ReturnEvents {
    /// Creates the converter for returns that are stored in `storage`.
    pub fn new(config: Arc<MasterConfig>, storage: Blocking<Storage>, master: MinionId) -> Self {
        ReturnEvents { config, storage, master }
    }

    /// Returns the event of a return. If it exceeds `max_event_size`, the job cache stores it whole and the event is
    /// trimmed. Returns `None` if storing failed temporarily, so that the sender has to retry.
    pub async fn event_of_return(&self, tag: &str, jid: &Jid, id: &MinionId, mut load: Map) -> Option<Map> {
        let limit = self.config.max_event_size.saturating_sub(tag.len() + BUS_OVERHEAD);
        if !may_exceed(&load, limit) {
            return Some(load);
        }
        let size = msgpack::pack_map(&load).len();
        if size <= limit {
            return Some(load);
        }
        metrics::RETURNS_TRIMMED.add(1);
        if self.config.job_cache && load.contains_key("return") && !load.contains_key(NOT_CACHED) {
            load = self.store_large(jid, id, load, size).await?;
        }
        trim(&mut load, limit);
        tracing::info!(%jid, minion = %id, size, "event of a return exceeds max_event_size and is trimmed");
        Some(load)
    }

    /// Returns the event of a call's result. Calls are not retried: if storing the result whole fails, only the trimmed
    /// one is stored. `is_cached` is whether the job cache stores calls of the function.
    pub async fn event_of_call<'a>(
        &self,
        tag: &str,
        jid: &Jid,
        mut body: Cow<'a, Map>,
        is_cached: bool,
    ) -> Cow<'a, Map> {
        if levels::check(&body).is_err() && trim_deep(body.to_mut()) {
            metrics::RETURNS_TRIMMED.add(1);
            tracing::info!(%jid, "event of a result nests deeper than {MAX_LEVELS} levels and is trimmed");
        }
        let limit = self.config.max_event_size.saturating_sub(tag.len() + BUS_OVERHEAD);
        if !may_exceed(&body, limit) {
            return body;
        }
        let whole = msgpack::pack_map(&body);
        let size = whole.len();
        if size <= limit {
            return body;
        }
        metrics::RETURNS_TRIMMED.add(1);
        let mut trimmed = body.into_owned();
        if self.config.job_cache && is_cached {
            let (master, job) = (self.master.clone(), jid.clone());
            let stored = self.storage.run(move |storage| {
                match storage.large_returns.reserve(&job, &master, size as u64) {
                    Ok(true) => {}
                    Ok(false) => return Err("no space left (large_returns_size)".to_owned()),
                    Err(error) => return Err(error.to_string()),
                }
                let call = Call::new(master, job, whole.into());
                let saved = storage.job_cache.save_calls(&[call]).and_then(|()| storage.job_cache.flush());
                saved.map_err(|error| error.to_string())
            });
            match stored.await.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(()) => _ = trimmed.insert(NOT_CACHED.into(), true.into()),
                Err(error) => {
                    brine_job::metrics::RETURNS_LOST.add(1);
                    tracing::warn!(%jid, size, error, "storing a large result failed: it is stored trimmed");
                }
            }
        }
        trim(&mut trimmed, limit);
        Cow::Owned(trimmed)
    }

    /// Stores a return whole, if there is space for it, and returns it marked as stored.
    async fn store_large(&self, jid: &Jid, id: &MinionId, load: Map, size: usize) -> Option<Map> {
        let (jid, id) = (jid.clone(), id.clone());
        let (job, minion) = (jid.clone(), id.clone());
        let stored = self.storage.run(move |storage| {
            match storage.large_returns.reserve(&job, &minion, size as u64) {
                Ok(true) => {}
                Ok(false) => return (load, Ok(false)),
                Err(error) => return (load, Err(error.into())),
            }
            let message: Map = ["cmd", "ts"].iter().filter_map(|name| load.get_key_value(*name)).map(owned).collect();
            let Ok(one) = Return::from_map(without_envelope(load)) else { return (message, Ok(false)) };
            let result = storage.large_returns.keep_for_members(&one).map_err(ReturnerError::from);
            let stored = result.and_then(|()| store_whole(storage, &one));
            let mut load = one.into_map();
            load.extend(message);
            (load, stored.map(|()| true))
        });
        let (mut load, stored) = match stored.await {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(%jid, minion = %id, %error, "storing a large return failed: the minion retries");
                return None;
            }
        };
        match stored {
            Ok(true) => {
                load.insert(NOT_CACHED.into(), WHOLE.into());
            }
            Ok(false) => {
                brine_job::metrics::RETURNS_LOST.add(1);
                tracing::warn!(%jid, minion = %id, size, "large return is stored trimmed: no space left (large_returns_size)");
            }
            Err(error @ ReturnerError::Store(_)) => {
                tracing::error!(%jid, minion = %id, %error, "storing a large return failed: the minion retries");
                return None;
            }
            Err(error) => {
                brine_job::metrics::RETURNS_LOST.add(1);
                tracing::error!(%jid, minion = %id, size, %error, "storing a large return failed: it is stored trimmed");
            }
        }
        Some(load)
    }
}

fn owned((name, value): (&brine_value::Value, &brine_value::Value)) -> (brine_value::Value, brine_value::Value) {
    (name.clone(), value.clone())
}
