//! Events and job returns of minions. Minions receive the response after the journal has persisted them.

use std::sync::Arc;

use brine_bus::BusError;
use brine_event::Event;
use brine_ids::MinionId;
use brine_job::trim;
use brine_master_store::job_events::NOT_CACHED;
use brine_master_store::storage::Storage;
use brine_value::levels::MAX_LEVELS;
use brine_value::{Map, Value, list};
use brine_wire::MinionEvents;
use brine_zmtp::Worker;

use super::{Requests, tags};
use crate::metrics;
use crate::state_errors;

/// Why an event or return is not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is invalid: a retry cannot succeed.
    Invalid,
    /// The store cannot accept it now: a retry may succeed.
    Now,
}

impl Requests {
    /// Waits until the journal has persisted the events up to a sequence number. Returns whether it has, which is the
    /// response to the minion.
    pub(super) async fn is_persisted(&self, published: Option<u64>, worker: Worker) -> bool {
        let Some(last) = published else { return false };
        // Other requests are handled meanwhile, and committed together.
        drop(worker);
        self.services.bus.persisted(last).await.is_ok()
    }

    /// Publishes the event of a webhook that the REST API has received. Returns whether it is persisted.
    pub(super) async fn hook_event(&self, tag: &str, mut body: Map, worker: Worker) -> bool {
        remove_reserved(&mut body);
        let published = self.services.events.fire(tag, &body).await;
        self.is_persisted(published, worker).await
    }

    /// Publishes a minion's events. Returns the sequence number of the last one; `None` if one is refused. The sender in
    /// `_from` and, in the minion's own tags, in `id` is that of the session.
    pub(super) async fn minion_events(&self, id: &MinionId, sent: MinionEvents) -> Option<u64> {
        let MinionEvents { events, pretag } = sent;
        if let Some(pretag) = &pretag
            && !tags::may_prefix(id, pretag, self.services.facts.syndics.allow(id))
        {
            brine_bus::metrics::EVENTS_REFUSED.add(1);
            tracing::warn!(minion = %id, pretag, "event refused: only a syndic may set a pretag, and only its own");
            return None;
        }
        let has_syndics = self.services.facts.syndics.allow(id);
        let own = if pretag.is_some() { self.accepted().await? } else { Vec::new() };
        let is_own = |id: &MinionId| own.binary_search_by(|other| other.as_str().cmp(id.as_str())).is_ok();
        let mut last = 0;
        for (tag, mut body) in events {
            // The other events of a syndic come from other minions.
            if pretag.is_some() && !tags::is_plain(&tag) {
                brine_bus::metrics::EVENTS_REFUSED.add(1);
                tracing::warn!(minion = %id, %tag, "event refused: its tag has control characters, or leads elsewhere");
                continue;
            }
            let is_start = has_syndics && tags::is_start_of_syndic(id, &tag);
            if is_start || pretag.is_some() {
                self.record_syndic(id).await;
            }
            let is_webhook = tags::is_webhook(&tag) && !self.receives_webhooks;
            if pretag.is_none() && !is_start && !is_webhook && !tags::may_publish(id, &tag) {
                brine_bus::metrics::EVENTS_REFUSED.add(1);
                tracing::warn!(minion = %id, %tag, "event refused: the tag belongs to the master or to another minion");
                return None;
            }
            remove_reserved(&mut body);
            if body.contains_key("fun") {
                // Jobs of masters below, and whatever else names a function and its arguments.
                body.extend(self.services.mask.record(&body));
            }
            if body.contains_key("cmd") || pretag.is_none() && tags::names_sender(&tag) {
                body.insert("id".into(), id.into());
            }
            if body.contains_key("cmd") {
                body.entry("ts".into()).or_insert_with(now);
            }
            let jid = body.get_mut("data").and_then(Value::as_map_mut).and_then(|data| data.shift_remove("_jid"));
            if let Some(Ok(jid)) = jid.map(|jid| jid.to_string().parse()) {
                self.services.jobs.causality.mark(&jid, &mut body);
                body.insert("_jid".into(), (&jid).into());
            }
            if pretag.is_some() && tags::is_of_minion_below(id, &tag, is_own) {
                // A refusal is logged; the event is also published with its prefix below.
                _ = self.publish_for(id, &tag, body.clone()).await;
            }
            let tag = pretag.as_ref().map_or_else(|| tag.clone(), |pretag| format!("{pretag}/{tag}"));
            match self.publish_for(id, &tag, body).await {
                Ok(seq) => last = seq,
                // The other events of a syndic come from other minions.
                Err(Refused::Invalid) if pretag.is_some() => {}
                Err(_) => return None,
            }
        }
        Some(last)
    }

    /// Returns the ids of the accepted minions, sorted; `None` if they cannot be listed, which is logged.
    async fn accepted(&self) -> Option<Vec<String>> {
        self.services.storage.run(Storage::accepted).await.ok()?.ok()
    }

    /// Records that this minion is a syndic.
    async fn record_syndic(&self, id: &MinionId) {
        if self.services.facts.syndics.record(id) {
            tracing::info!(syndic = %id, "a syndic has appeared: jobs go to its minions, too");
            self.store_syndic(id).await;
        }
    }

    async fn store_syndic(&self, id: &MinionId) {
        let (facts, syndic) = (Arc::clone(&self.services.facts), id.clone());
        let stored = self.services.executors.disk.run(move |thread| facts.syndics.store(&syndic, thread)).await;
        if let Ok(Err(error)) = stored {
            tracing::error!(syndic = %id, %error, "recording a syndic failed: it is known until the master restarts");
        }
    }

    /// Publishes an event on behalf of an authenticated minion. Returns its sequence number. A refusal is logged.
    async fn publish_for(&self, from: &MinionId, tag: &str, body: Map) -> Result<u64, Refused> {
        let published = match Event::from_minion(tag, body, from) {
            Ok(event) => self.services.bus.fire_event(event).await,
            Err(error) => {
                brine_bus::metrics::EVENTS_REFUSED.add(1);
                Err(error.into())
            }
        };
        published.map_err(|error| {
            tracing::warn!(minion = %from, %tag, %error, "event of a minion refused");
            match error {
                BusError::Event(_) | BusError::TooLarge { .. } => Refused::Invalid,
                _ => Refused::Now,
            }
        })
    }

    /// Publishes a minion's job returns. Returns the sequence number of the last one. `from` is the authenticated sender: the
    /// minion itself, or its syndic.
    pub(super) async fn returns(&self, id: &MinionId, from: &MinionId, loads: Vec<Map>) -> Result<u64, Refused> {
        let mut last = 0;
        if id == from && self.services.facts.syndics.returned(id) {
            self.store_syndic(id).await;
        }
        for mut load in loads {
            let jid = match load.get("jid").and_then(Value::as_str) {
                // The return of a local call (`salt-call`), which requests a new jid.
                Some("req" | "nocache") => {
                    let arg = load.get("fun_args").cloned().unwrap_or_else(|| list![]);
                    load.entry("arg".into()).or_insert(arg);
                    load.insert("tgt".into(), id.into());
                    load.insert("tgt_type".into(), "glob".into());
                    brine_ids::Jid::new()
                }
                Some(text) => match text.parse() {
                    Ok(jid) => jid,
                    Err(error) => {
                        brine_wire::metrics::REQUESTS_REFUSED.add(1);
                        tracing::warn!(minion = %id, %error, "return refused");
                        return Err(Refused::Invalid);
                    }
                },
                None => {
                    brine_wire::metrics::REQUESTS_REFUSED.add(1);
                    tracing::warn!(minion = %id, "return refused: it has no job id");
                    return Err(Refused::Invalid);
                }
            };
            let not_cached = load.get("jid").and_then(Value::as_str) == Some("nocache");
            load.retain(|key, _| !matches!(key.as_str(), Some("tok" | "nonce" | "serial" | "load")));
            remove_reserved(&mut load);
            // Hostile minions and those of Salt return their arguments as they are.
            load.extend(self.services.mask.record(&load));
            if not_cached {
                load.insert(NOT_CACHED.into(), true.into());
            }
            if trim::refuse_deep(&mut load) {
                tracing::warn!(minion = %id, %jid, "return refused: it nests deeper than {MAX_LEVELS} levels of lists and mappings");
            }
            load.insert("jid".into(), (&jid).into());
            load.insert("id".into(), id.into());
            load.entry("cmd".into()).or_insert_with(|| "_return".into());
            load.entry("ts".into()).or_insert_with(now);
            metrics::RETURNS.add(1);
            self.services.jobs.causality.mark(&jid, &mut load);
            let errors = state_errors::of_return(&load);
            let text = |name: &str| load.get(name).map(ToString::to_string).unwrap_or_default();
            tracing::debug!(minion = %id, %jid, fun = text("fun"), retcode = text("retcode"), "return received");
            if self.unwritten.try_write().is_err() {
                // The job may be one that a client has just published, and whose files are still being written.
                drop(self.unwritten.write().await);
            }
            if self.services.job_files.has(&jid) {
                let (files, jid, id, load) =
                    (Arc::clone(&self.services.job_files), jid.clone(), id.clone(), load.clone());
                let written = self.services.executors.disk.run(move |_| files.write_return(&jid, &id, &load));
                if let Ok(Err(error)) = written.await {
                    tracing::error!(%error, "writing the file of a return failed");
                }
            }
            let tag = format!("salt/job/{jid}/ret/{id}");
            let load = self.returns.event_of_return(&tag, &jid, id, load).await.ok_or(Refused::Now)?;
            last = self.publish_for(from, &tag, load).await?;
            self.services.events.job_published(last);
            for (tag, body) in errors {
                // A refusal is logged.
                _ = self.publish_for(from, &tag, body).await;
            }
        }
        Ok(last)
    }

    /// Publishes returns of the minions below a syndic. Only the options `order_masters` and `syndics` determine which
    /// ids may be syndics. A syndic cannot return for a minion of this master.
    pub(super) async fn syndic_returns(&self, id: &MinionId, loads: Vec<Map>) -> Option<u64> {
        if !self.services.facts.syndics.allow(id) {
            brine_wire::metrics::REQUESTS_REFUSED.add(1);
            tracing::warn!(minion = %id, "returns of other minions refused: 'order_masters' is off, or 'syndics' does not list this id");
            return None;
        }
        self.record_syndic(id).await;
        let accepted = self.accepted().await?;
        let mut last = 0;
        for load in loads {
            let of = load.get("id").map(|id| id.to_string().parse::<MinionId>());
            if let Some(Ok(of)) = of {
                if of != *id && accepted.binary_search_by(|other| other.as_str().cmp(of.as_str())).is_ok() {
                    brine_wire::metrics::REQUESTS_REFUSED.add(1);
                    tracing::warn!(syndic = %id, minion = %of, "return of a syndic refused: the minion is one of this master");
                    continue;
                }
                match self.returns(&of, id, vec![load]).await {
                    Ok(seq) => last = seq,
                    Err(Refused::Invalid) => {}
                    Err(Refused::Now) => return None,
                }
            } else {
                brine_wire::metrics::REQUESTS_REFUSED.add(1);
                tracing::warn!(minion = %id, "return of a syndic refused: the minion id is invalid");
            }
        }
        Some(last)
    }
}

/// Returns the timestamp for a message without one, in seconds since 1970.
fn now() -> Value {
    jiff::Timestamp::now().as_second().into()
}

/// Removes the fields that only the master may set: causes of reactions, and flags for the job cache. (`_seq`, `_stamp`
/// and `_from` are set by the bus.)
fn remove_reserved(body: &mut Map) {
    const RESERVED: &[&str] = &[
        "_cause",
        brine_reactor::DEPTH,
        "_sls",
        "_entry",
        "_reaction",
        "_jid",
        brine_master_store::job_events::MORE,
        brine_master_store::job_events::PART,
        brine_event::MASKED,
        NOT_CACHED,
    ];
    body.retain(|name, _| !name.as_str().is_some_and(|name| RESERVED.contains(&name)));
}
