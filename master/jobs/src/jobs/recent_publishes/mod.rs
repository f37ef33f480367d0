//! Recent publishes (`publish_catch_up`): resends jobs that were published while a Brine minion was reconnecting.
//!
//! A publish is lost for a minion that is not subscribed. So each load is retained for a while, and a minion that has
//! subscribed again requests the jobs since the last one that it received. It runs each jid once, so duplicates are
//! harmless. After a restart of the master the loads are read from the journal.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use brine_bus::{Bus, TimeOrSeq};
use brine_event::MASKED;
use brine_ids::{Jid, MinionId};
use brine_master_store::sealed_arguments::SealedArguments;
use brine_master_store::storage::Storage;
use brine_runtime::executors::MayBlock;
use brine_target::{Target, TargetFacts, TargetKind};
use brine_value::{Map, Value, msgpack};
use brine_wire::CatchUp;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::metrics;

/// The maximum total size of the loads, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// The size of a publish in addition to its load, in bytes: its entry and its parsed target.
const ENTRY_SIZE: usize = 512;
/// The maximum size of the loads in one response, in bytes.
const MAX_ANSWER: usize = 4 << 20;
/// Stale jobs are retained for this multiple of the window, so that they can be reported as missed.
const REPORTED_FOR: u32 = 10;
/// The tolerance for reordering: parallel publishes may be recorded in another order than they are sent. Jobs within
/// this time before the last job of a minion count as missed.
const REORDERING_TOLERANCE: Duration = Duration::from_secs(5);
/// The same tolerance in a cluster: members receive each other's jobs only after the delay of the servers, which is
/// longer if a server has just failed.
const CLUSTER_REORDERING_TOLERANCE: Duration = Duration::from_secs(60);
/// The number of events read from the journal at once.
const PAGE: usize = 1024;
/// The maximum time that reading the journal delays the start.
const READ_TIMEOUT: Duration = Duration::from_secs(3);

/// The loads of recent publishes, oldest first.
pub(crate) struct RecentPublishes {
    window: Duration,
    is_member: bool,
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    publishes: VecDeque<Arc<Publish>>,
    bytes: usize,
}

struct Publish {
    jid: Jid,
    when: Instant,
    load: Bytes,
    /// Parsed once, when the first minion asks: after a restart all minions do. `None` if it is invalid.
    target: OnceLock<Option<Target>>,
}

impl Publish {
    fn size(&self) -> usize {
        self.load.len() + ENTRY_SIZE
    }

    /// Whether a minion may match the job's target.
    fn may_match(&self, facts: &impl TargetFacts, nodegroups: &Map) -> bool {
        let target = self.target.get_or_init(|| {
            let load = msgpack::unpack_map(&self.load).ok()?;
            let delimiter = load.get("delimiter").and_then(Value::as_str).unwrap_or(":");
            let kind = load.get("tgt_type")?.to_string().parse::<TargetKind>().ok()?;
            Target::parse(kind, load.get("tgt").cloned().unwrap_or_default(), delimiter, nodegroups).ok()
        });
        target.as_ref().is_some_and(|target| target.may_match(facts))
    }
}

/// The jobs that a minion may have missed.
#[derive(Default)]
struct Missed {
    /// The jobs within the window, oldest first.
    fresh: Vec<Arc<Publish>>,
    /// The older jobs, which are not resent.
    stale: Vec<Arc<Publish>>,
}

impl RecentPublishes {
    /// Creates an empty list. A window of zero disables it. `is_member` is whether the master is one of a cluster.
    pub fn new(window: Duration, is_member: bool) -> Self {
        RecentPublishes { window, is_member, recent: Mutex::default() }
    }

    /// Records a packed load that is about to be published.
    pub fn record(&self, jid: &Jid, load: &Bytes) {
        self.record_at(jid, load, Instant::now());
    }

    fn record_at(&self, jid: &Jid, load: &Bytes, when: Instant) {
        if self.window.is_zero() {
            return;
        }
        let publish = Arc::new(Publish { jid: jid.clone(), when, load: load.clone(), target: OnceLock::new() });
        let mut recent = self.recent.lock();
        recent.bytes += publish.size();
        recent.publishes.push_back(publish);
        let lifetime = self.window * REPORTED_FOR;
        while let Some(oldest) = recent.publishes.front() {
            if recent.bytes <= MAX_BYTES && oldest.when.elapsed() < lifetime {
                break;
            }
            recent.bytes -= oldest.size();
            recent.publishes.pop_front();
        }
    }

    /// Reads recent publishes from the journal, within a time limit.
    pub fn read_journal(&self, thread: &MayBlock, bus: &Bus, sealed: &SealedArguments) {
        if self.window.is_zero() {
            return;
        }
        let (started, now) = (Instant::now(), jiff::Timestamp::now().as_microsecond().max(0).cast_unsigned());
        let mut from = TimeOrSeq::Time(now.saturating_sub(self.window.as_micros() as u64));
        loop {
            let page = match bus.read(thread, from, PAGE) {
                Ok(page) => page,
                Err(error) => return tracing::error!(%error, "reading recent publishes from the journal failed"),
            };
            let Some(last) = page.last() else { return };
            from = TimeOrSeq::Seq(last.seq() + 1);
            for event in page {
                let Some(jid) = event.tag().strip_prefix("salt/job/").and_then(|rest| rest.strip_suffix("/publish"))
                else {
                    continue;
                };
                let Ok(jid) = jid.parse::<Jid>() else { continue };
                let age = Duration::from_micros(now.saturating_sub(event.time().unwrap_or(now)));
                let mut load = event.data();
                if let Some(reference) = load.shift_remove(MASKED) {
                    // Minions never receive masked arguments.
                    let Some(fields) = sealed.fields(&reference.to_string()) else {
                        metrics::PUBLISHES_MISSED.add(1);
                        tracing::warn!(%jid, "a job is not delivered late: its masked arguments are lost");
                        continue;
                    };
                    load.extend(fields);
                }
                load.retain(|name, _| name.as_str().is_none_or(|name| !name.starts_with('_')));
                self.record_at(&jid, &msgpack::pack_map(&load).into(), started.checked_sub(age).unwrap_or(started));
            }
            if started.elapsed() > READ_TIMEOUT {
                return tracing::warn!(
                    "reading recent publishes from the journal took too long: minions may miss jobs"
                );
            }
        }
    }

    /// Returns the jobs that a minion may have missed: all of them if it reports neither its last job nor the time that
    /// it was disconnected.
    /// A syndic also gets its last job again: the parts of a batch share its id, and it knows which ones it has
    /// published.
    fn after(&self, from: &CatchUp, is_syndic: bool) -> Missed {
        let tolerance = if self.is_member { CLUSTER_REORDERING_TOLERANCE } else { REORDERING_TOLERANCE };
        let mut missed = Missed::default();
        let recent = self.recent.lock();
        // A job may be published several times, after a restart or in batches: the first time counts.
        let last_publish =
            from.last.as_ref().and_then(|last| recent.publishes.iter().find(|publish| publish.jid == *last));
        for publish in &recent.publishes {
            let age = publish.when.elapsed();
            let is_fresh = age <= self.window;
            // To send a job twice does no harm. To report one as lost that has run does: it is one only in strict order.
            let reordered = if is_fresh { tolerance } else { Duration::ZERO };
            let is_of_absence =
                || from.away.is_some_and(|away| age <= Duration::from_secs(away).saturating_add(reordered));
            let is_missed = match (last_publish, &from.last) {
                (Some(last_publish), _) => {
                    (is_syndic || publish.jid != last_publish.jid) && publish.when + reordered > last_publish.when
                }
                // The last job has been dropped, or belongs to another master. Newer jobs may have been missed, and
                // those of the absence in case the other master's clock differs. In a cluster the last job may be known
                // only to a dead member, which lacked older jobs of this one.
                (None, Some(last)) => publish.jid > *last || is_of_absence() || (self.is_member && is_fresh),
                (None, None) => from.away.is_none() || is_of_absence(),
            };
            if is_missed {
                if is_fresh { &mut missed.fresh } else { &mut missed.stale }.push(Arc::clone(publish));
            }
        }
        missed
    }
}

impl RecentPublishes {
    /// Returns the loads that a minion has missed, oldest first. A syndic receives the loads for all targets.
    pub fn missed(
        &self,
        storage: &Storage,
        nodegroups: &Map,
        (id, is_syndic): (&MinionId, bool),
        from: &CatchUp,
    ) -> Value {
        let missed = self.after(from, is_syndic);
        let facts = storage.minion_data.facts(id.as_str());
        let is_target = |publish: &&Arc<Publish>| is_syndic || publish.may_match(&facts, nodegroups);
        // A single log line however many there are, since the minion may repeat its request at any rate.
        let stale: Vec<_> = missed.stale.iter().filter(is_target).collect();
        if let Some(last) = stale.last() {
            metrics::PUBLISHES_MISSED.add(stale.len() as u64);
            tracing::warn!(minion = %id, jobs = stale.len(), last = %last.jid, "minion missed jobs: they were published more than publish_catch_up seconds ago");
        }
        let mut size = 0;
        let mut loads = Vec::new();
        // If not all fit, the newest take precedence.
        for publish in missed.fresh.iter().rev().filter(is_target) {
            size += publish.load.len();
            if size > MAX_ANSWER {
                metrics::PUBLISHES_MISSED.add(1);
                tracing::warn!(minion = %id, "minion missed jobs: those since its last one exceed {MAX_ANSWER} bytes");
                break;
            }
            if let Ok(load) = msgpack::unpack_map(&publish.load) {
                loads.push(Value::from(load));
            }
        }
        loads.reverse();
        if !loads.is_empty() {
            metrics::PUBLISHES_CAUGHT_UP.add(loads.len() as u64);
            tracing::info!(minion = %id, jobs = loads.len(), "minion receives missed jobs");
        }
        loads.into()
    }
}

#[cfg(test)]
mod tests;
