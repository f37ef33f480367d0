//! The job cache and the event returners: durable subscribers of the bus that hand events to returners.

use std::collections::BTreeMap;
use std::sync::Arc;

use brine_bus::{Bus, Filter, Start, Subscription};
use brine_event::{Event, FROM, SENDER_STAMP};
use brine_ids::{Jid, MinionId};
use brine_job::{Call, InvalidJob, Load, Return};
use brine_returners::{Returner, ReturnerError};
use brine_runtime::executors::Executor;
use brine_text::glob::GlobSet;
use brine_value::{Map, Value, list, msgpack};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::delivery::{Queueing, Unstored, deliver, deliver_queued};
use crate::job_events::{MORE, NOT_CACHED, PART};

/// The limits of one storage operation: the number of returns, and the total size of their events in bytes. Decoded,
/// they take several times as much memory.
const MAX_RETURNS: usize = 1000;
const MAX_RETURN_BYTES: usize = 8 << 20;

/// The function by which `salt-cp` sends chunks of a file. Its arguments start with the path and the chunk.
const RECEIVE_CHUNK: &str = "cp.recv_chunked";

/// The job cache of a master.
#[derive(Clone)]
pub struct JobCache {
    /// Where jobs are stored.
    pub cache: Arc<dyn Returner>,
    /// The id of the master, under which calls of its own functions are stored.
    pub id: MinionId,
    /// Whether calls of runner functions are stored (`runner_returns`).
    pub runner_returns: bool,
    /// Whether the time of the last return of each job is stored (`job_cache_store_endtime`).
    pub end_times: bool,
}

/// Stores jobs, returns, and calls of runner and wheel functions until `shutdown`.
pub async fn cache_jobs(
    bus: &Bus,
    cache: JobCache,
    disk: Executor,
    progress: Arc<watch::Sender<u64>>,
    shutdown: CancellationToken,
) {
    let mut events = match subscribe_jobs(bus) {
        Ok(events) => events,
        Err(error) => return tracing::error!(%error, "subscribing the job cache to the event bus failed"),
    };
    let name = cache.cache.name();
    deliver(bus, name, &mut events, &disk, shutdown, move |batch| {
        let stored = cache.store_all(batch);
        let handled = stored.as_ref().map_or_else(|unstored| unstored.handled, |()| batch.len());
        if let Some(last) = batch[..handled].last() {
            progress.send_replace(last.seq());
        }
        stored
    })
    .await;
}

/// Stores only the loads of jobs in another returner (`ext_job_cache`) until `shutdown`; minions store their returns
/// there themselves.
pub async fn cache_loads(
    bus: &Bus,
    mut events: Subscription,
    returner: Arc<dyn Returner>,
    disk: Executor,
    shutdown: CancellationToken,
) {
    let name = returner.name();
    deliver(bus, name, &mut events, &disk, shutdown, move |batch| {
        let mut queued = Ok(());
        for (handled, event) in batch.iter().enumerate() {
            let jid = event.tag().strip_prefix("salt/job/").and_then(|rest| rest.strip_suffix("/new"));
            match jid.map(|jid| store_load(&*returner, jid, event.data())) {
                None | Some(Ok(())) => {}
                Some(Err(CacheError::Returner(error))) => {
                    queued = Err(Unstored { handled, count: 1, error });
                    break;
                }
                Some(Err(error)) => tracing::debug!(tag = event.tag(), %error, "job event not stored"),
            }
        }
        returner.flush_with_others().map_err(|error| Unstored { handled: 0, count: 1, error })?;
        queued
    })
    .await;
}

/// Creates the durable subscription of the job cache.
pub fn subscribe_jobs(bus: &Bus) -> Result<Subscription, brine_bus::store::StoreError> {
    let prefixes = ["salt/job/", "salt/run/", "salt/wheel/", "syndic/"];
    bus.subscribe(Filter::Prefixes(prefixes.map(Into::into).into()), Start::Durable("job_cache".into()))
}

/// The reason why an event is not stored.
#[derive(Debug, thiserror::Error)]
enum CacheError {
    #[error(transparent)]
    Malformed(#[from] InvalidJob),
    #[error("only the master publishes it, and it is from minion '{0}'")]
    From(Value),
    #[error(transparent)]
    Returner(#[from] ReturnerError),
}

impl JobCache {
    /// Stores job events and waits until they are on disk: the cache may refuse what it has queued, and the cursor must
    /// not pass it.
    fn store_all(&self, events: &[Event]) -> Result<(), Unstored> {
        let queued = self.queue_all(events);
        // Those that wait for the cache hurry (`Events::job_cache_caught_up`).
        self.cache.flush_with_others().map_err(|error| Unstored { handled: 0, count: 1, error })?;
        queued
    }

    /// Stores job events: returns, and calls of the master's own functions, each kind in one operation.
    fn queue_all(&self, events: &[Event]) -> Result<(), Unstored> {
        let mut batch = JobBatch::default();
        for (index, event) in events.iter().enumerate() {
            match self.store(event) {
                Ok(None) => {}
                Ok(Some(Stored::Call(call))) => {
                    let end_time = self.end_time(call.jid(), event);
                    batch.calls.push(call, index, end_time);
                }
                Ok(Some(Stored::Return(one))) => {
                    let end_time = self.end_time(one.jid(), event);
                    batch.returns.push(one, index, end_time);
                    batch.bytes += event.body().len();
                }
                Err(error) => {
                    batch.store(&*self.cache)?;
                    return Err(Unstored { handled: index, count: 1, error });
                }
            }
            if batch.returns.what.len() >= MAX_RETURNS || batch.bytes >= MAX_RETURN_BYTES {
                batch.store(&*self.cache)?;
            }
        }
        batch.store(&*self.cache)
    }

    /// Returns the time of a return, if it is to be stored.
    fn end_time(&self, jid: &Jid, event: &Event) -> Option<(Jid, u64)> {
        if self.end_times { event.time().map(|time| (jid.clone(), time)) } else { None }
    }

    /// Stores a load, or returns the return or call that is to be stored. Job and minion are taken from the tag, which
    /// the bus has checked, not from the body. Only the master may publish loads and calls.
    fn store(&self, event: &Event) -> Result<Option<Stored>, ReturnerError> {
        let parts: Vec<&str> = event.tag().split('/').skip(1).collect();
        let stored = match parts[..] {
            _ if event.tag().starts_with("syndic/") => self.store_report(event).map(|()| None),
            ["job", jid, "new"] => store_load(&*self.cache, jid, event.data()).map(|()| None),
            ["job", jid, "ret", id] => self.return_of(jid, id, event.data()).map(|one| one.map(Stored::Return)),
            ["run", jid, "ret"] if self.runner_returns => self.call_of(jid, event).map(|call| call.map(Stored::Call)),
            ["wheel", jid, "ret"] => self.call_of(jid, event).map(|call| call.map(Stored::Call)),
            _ => Ok(None),
        };
        match stored {
            Ok(stored) => Ok(stored),
            Err(CacheError::Returner(error)) => Err(error),
            Err(error) => {
                brine_bus::metrics::EVENTS_REFUSED.add(1);
                tracing::warn!(tag = event.tag(), seq = event.seq(), %error, "job event not stored");
                Ok(None)
            }
        }
    }

    /// Stores the report of a syndic: the minions of a job there, or a job that was started by a lower master.
    fn store_report(&self, event: &Event) -> Result<(), CacheError> {
        let job = event.tag().split_once("/salt/job/").and_then(|(_, job)| job.strip_suffix("/new"));
        let Some(Ok(jid)) = job.map(str::parse::<Jid>) else { return Ok(()) };
        let mut data = event.data();
        // Only the request handler publishes such tags, and only those of the sender itself.
        let from = data.shift_remove(FROM).unwrap_or_default().to_string();
        if event.tag().strip_prefix("syndic/").and_then(|rest| rest.split('/').next()) != Some(from.as_str()) {
            return Err(CacheError::From(from.into()));
        }
        let minions = data.get("minions").and_then(Value::as_list).unwrap_or_default().to_vec();
        let load = match self.cache.get_load(&jid)? {
            Some(_) if minions.is_empty() => return Ok(()),
            Some(previous) => previous.with_minions(minions.iter().filter_map(|id| id.to_string().parse().ok())),
            None => {
                data.retain(|name, _| !matches!(name.as_str(), Some("syndics" | SENDER_STAMP)));
                data.insert("jid".into(), (&jid).into());
                Load::from_map(data)?
            }
        };
        Ok(self.cache.save_load(&load)?)
    }

    /// Returns the return to be stored. Also stores the load of a job that was not published.
    fn return_of(&self, jid: &str, id: &str, mut data: Map) -> Result<Option<Return>, CacheError> {
        if data.contains_key(NOT_CACHED) {
            return Ok(None);
        }
        data.insert("jid".into(), jid.into());
        data.insert("id".into(), id.into());
        let one = Return::from_map(without_envelope(data))?;
        store_standalone(&*self.cache, &one)?;
        Ok(Some(one))
    }

    /// Returns the finished call that an event reports. The body is scanned, not decoded.
    fn call_of(&self, jid: &str, event: &Event) -> Result<Option<Call>, CacheError> {
        let (mut from, mut has_user, mut is_cached) = (None, false, true);
        // The body was validated when the event was created.
        _ = msgpack::scan(event.body(), |entry| match entry.key {
            Some(FROM) => from = msgpack::unpack(entry.value).ok(),
            Some("user") => has_user = true,
            Some(NOT_CACHED) => is_cached = false,
            _ => {}
        });
        if let Some(from) = from {
            return Err(CacheError::From(from));
        }
        // As in Salt, a call of an unknown function is not a job; its event has no user.
        if !has_user || !is_cached {
            return Ok(None);
        }
        let jid = jid.parse().map_err(InvalidJob::from)?;
        Ok(Some(Call::new(self.id.clone(), jid, event.frame().slice_ref(event.body()))))
    }
}

/// Stores the load in the event of a new job.
fn store_load(cache: &dyn Returner, jid: &str, mut data: Map) -> Result<(), CacheError> {
    by_master(&data)?;
    data.insert("jid".into(), jid.into());
    let is_part = data.shift_remove(PART).is_some();
    let mut data = without_piece(whole_load(data));
    let previous = if is_part { cache.get_load(&jid.parse().map_err(InvalidJob::from)?)? } else { None };
    if let Some(previous) = &previous {
        // The targets of a batch are the lists of its parts, of which the job is the sum.
        let list = |map: &Map| map.get("tgt").and_then(Value::as_list).map(<[Value]>::to_vec);
        if let (Some(mut all), Some(more)) = (list(previous.map()), list(&data)) {
            all.extend(more.into_iter().filter(|id| !all.contains(id)).collect::<Vec<_>>());
            data.insert("tgt".into(), all.into());
        }
    }
    let mut load = Load::from_map(data)?;
    if let Some(previous) = previous {
        load = load.with_minions(previous.minions());
    }
    Ok(cache.save_load(&load)?)
}

fn by_master(data: &Map) -> Result<(), CacheError> {
    data.get(FROM).map_or(Ok(()), |from| Err(CacheError::From(from.clone())))
}

/// The record that an event contributes to the job cache.
enum Stored {
    Return(Return),
    Call(Call),
}

/// Returns or calls, each with its event.
struct Records<T> {
    what: Vec<T>,
    of_event: Vec<RecordedEvent>,
}

/// The index of an event in its batch, and the time of its return, in microseconds since 1970, if that is stored.
struct RecordedEvent {
    index: usize,
    end_time: Option<(Jid, u64)>,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Records { what: Vec::new(), of_event: Vec::new() }
    }
}

impl<T> Records<T> {
    fn push(&mut self, what: T, index: usize, end_time: Option<(Jid, u64)>) {
        self.what.push(what);
        self.of_event.push(RecordedEvent { index, end_time });
    }
}

/// Returns and calls that are stored together.
#[derive(Default)]
struct JobBatch {
    calls: Records<Call>,
    returns: Records<Return>,
    /// The total size of the returns' events, in bytes.
    bytes: usize,
}

impl JobBatch {
    /// Stores all records and empties the batch. A retry after an error stores some records again, which is idempotent.
    fn store(&mut self, cache: &dyn Returner) -> Result<(), Unstored> {
        let JobBatch { calls, returns, .. } = std::mem::take(self);
        let events = calls.of_event.iter().chain(&returns.of_event);
        match store_together(cache, &calls.what, &returns.what, events) {
            // A rejected record must not have the others dropped.
            Err(error) if is_refused(&error) => store_one_by_one(cache, &calls, &returns),
            stored => stored.map_err(|error| Unstored { handled: 0, count: 1, error }),
        }
    }
}

fn store_together<'a>(
    cache: &dyn Returner,
    calls: &[Call],
    returns: &[Return],
    events: impl Iterator<Item = &'a RecordedEvent>,
) -> Result<(), ReturnerError> {
    let end_times: BTreeMap<Jid, u64> = events.filter_map(|event| event.end_time.clone()).collect();
    if !end_times.is_empty() {
        cache.save_end_times(&end_times)?;
    }
    if !calls.is_empty() {
        cache.save_calls(calls)?;
    }
    if returns.is_empty() { Ok(()) } else { cache.save_returns(returns) }
}

/// Stores records in the order of their events, up to the first one that cannot be stored.
fn store_one_by_one(cache: &dyn Returner, calls: &Records<Call>, returns: &Records<Return>) -> Result<(), Unstored> {
    let calls_of = calls.of_event.iter().zip(calls.what.chunks(1)).map(|(event, call)| (event, call, &[][..]));
    let returns_of = returns.of_event.iter().zip(returns.what.chunks(1)).map(|(event, one)| (event, &[][..], one));
    let mut records: Vec<(&RecordedEvent, &[Call], &[Return])> = calls_of.chain(returns_of).collect();
    records.sort_by_key(|(event, ..)| event.index);
    records.into_iter().try_for_each(|(event, call, one)| {
        let stored = store_together(cache, call, one, std::iter::once(event));
        stored.map_err(|error| Unstored { handled: event.index, count: 1, error })
    })
}

/// Whether a returner has rejected the data; otherwise it is currently unable to store anything.
fn is_refused(error: &ReturnerError) -> bool {
    !error.is_outage() && !matches!(error, ReturnerError::Store(_))
}

/// Stores a return, and the load of a job that was not published.
pub fn store_return(cache: &dyn Returner, one: &Return) -> Result<(), ReturnerError> {
    store_standalone(cache, one)?;
    cache.returner(one)
}

/// Stores the load of a job that was not published.
fn store_standalone(cache: &dyn Returner, one: &Return) -> Result<(), ReturnerError> {
    match load_of_standalone(one) {
        Some(load) if cache.get_load(load.jid())?.is_none() => cache.save_load(&load),
        _ => Ok(()),
    }
}

/// Builds the load of a job that was not published, such as one of a minion's schedule, from its return.
fn load_of_standalone(job_return: &Return) -> Option<Load> {
    let fields = job_return.map();
    let names = ["jid", "fun", "arg", "tgt", "tgt_type", "user", "metadata"];
    let mut load: Map = names.iter().filter_map(|name| Some(((*name).into(), fields.get(*name)?.clone()))).collect();
    load.contains_key("tgt").then(|| load.insert("minions".into(), list![job_return.id()]))?;
    Load::from_map(load).ok()
}

/// Returns the full load in the event of a new job, with the fields below [`MORE`].
fn whole_load(mut data: Map) -> Map {
    if let Some(Value::Map(more)) = data.shift_remove(MORE) {
        data.extend(more);
    }
    data
}

/// Replaces the chunk of a file in a `salt-cp` job by its size: otherwise the job cache would contain the whole file.
fn without_piece(mut data: Map) -> Map {
    if data.get("fun").and_then(Value::as_str) == Some(RECEIVE_CHUNK)
        && let Some(Value::List(arg)) = data.get_mut("arg")
        && let Some(piece) = arg.get_mut(1)
        && let Some(text) = piece.as_str()
    {
        *piece = format!("({} bytes)", text.len()).into();
    }
    data
}

/// Removes the message fields from a return.
pub fn without_envelope(mut data: Map) -> Map {
    data.retain(|name, _| !matches!(name.as_str(), Some("cmd" | "ts" | FROM | SENDER_STAMP)));
    data
}

/// Stores events.
fn store_events(returner: &dyn Returner, events: &[Event]) -> Result<(), Unstored> {
    if returner.stores_events_together() {
        match returner.event_return(events) {
            Ok(()) => return Ok(()),
            Err(error) if events.len() == 1 || !is_refused(&error) => {
                return Err(Unstored { handled: 0, count: 1, error });
            }
            // A rejected event must not block the others.
            Err(_) => {}
        }
    }
    events.iter().enumerate().try_for_each(|(handled, event)| {
        let stored = returner.event_return(std::slice::from_ref(event));
        stored.map_err(|error| Unstored { handled, count: 1, error })
    })
}

/// Delivers events to a returner of `event_return` until `shutdown`, except for those on the deny list.
pub async fn return_events(
    bus: &Bus,
    mut events: Subscription,
    returner: Arc<dyn Returner>,
    (deny, queueing): (Option<GlobSet>, Queueing),
    disk: Executor,
    shutdown: CancellationToken,
) {
    let name = returner.name();
    let is_wanted = move |event: &Event| deny.as_ref().is_none_or(|deny| !deny.is_match(event.tag()));
    let events = (&mut events, queueing, is_wanted);
    deliver_queued(bus, name, events, &disk, shutdown, move |batch| store_events(&*returner, batch)).await;
}

#[cfg(test)]
mod tests;
