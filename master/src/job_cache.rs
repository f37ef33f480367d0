//! The job cache and the event returners: durable subscribers of the bus that hand events to returners.

use std::sync::Arc;
use std::time::Duration;

use brine_bus::{Bus, Filter, Start, Subscription};
use brine_event::{Event, FROM, SENDER_STAMP};
use brine_ids::MinionId;
use brine_job::{Call, InvalidJob, Load, Return};
use brine_returners::{Returner, ReturnerError};
use brine_runtime::executors::Executor;
use brine_text::glob::GlobSet;
use brine_value::{Map, Value, list, msgpack};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::jobs::{MORE, PART};

/// The interval at which the cursor passes other events.
const PASS_INTERVAL: Duration = Duration::from_secs(1);
/// The bounds of the pause between retries.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The number of tries with a returner other than the master's store: about a minute.
const TRIES: u32 = 12;
/// The field of a return that the job cache does not store.
pub(crate) const NOT_CACHED: &str = "_nocache";

/// The job cache of a master.
#[derive(Clone)]
pub(crate) struct JobCache {
    pub cache: Arc<dyn Returner>,
    /// The id of the master, under which its own calls are stored.
    pub id: MinionId,
    /// Whether calls of runner functions are stored (`runner_returns`).
    pub runner_returns: bool,
}

/// Stores jobs, returns, and calls of runner and wheel functions until `shutdown`.
pub(crate) async fn cache_jobs(
    bus: &Bus,
    cache: JobCache,
    disk: Executor,
    progress: Arc<watch::Sender<u64>>,
    shutdown: CancellationToken,
) {
    let mut events = match subscribe_jobs(bus) {
        Ok(events) => events,
        Err(error) => return tracing::error!(%error, "subscribing the job cache failed"),
    };
    deliver(&mut events, &disk, shutdown, move |batch| {
        let stored = cache.store_all(batch);
        let handled = stored.as_ref().map_or_else(|unstored| unstored.handled, |()| batch.len());
        if let Some(last) = batch[..handled].last() {
            progress.send_replace(last.seq());
        }
        stored
    })
    .await;
}

/// Subscribes the job cache.
pub(crate) fn subscribe_jobs(bus: &Bus) -> Result<Subscription, brine_bus::store::StoreError> {
    let prefixes = ["salt/job/", "salt/run/", "salt/wheel/"];
    bus.subscribe(Filter::Prefixes(prefixes.map(Into::into).into()), Start::Durable("job_cache".into()))
}

/// The error of an event that is not stored.
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
    /// Stores events about jobs. Calls of the master's own functions are many: they are stored together.
    fn store_all(&self, events: &[Event]) -> Result<(), Unstored> {
        let mut calls = Vec::new();
        let mut stored = Ok(());
        for (handled, event) in events.iter().enumerate() {
            match self.store(event) {
                Ok(call) => calls.extend(call),
                Err(error) => {
                    stored = Err(Unstored { handled, count: 1, error });
                    break;
                }
            }
        }
        if !calls.is_empty()
            && let Err(error) = self.cache.save_calls(&calls)
        {
            // The retry stores the loads and returns among them again, which is idempotent.
            let count = stored.as_ref().map_or_else(|unstored| unstored.handled, |()| events.len());
            return Err(Unstored { handled: 0, count, error });
        }
        stored
    }

    /// Stores a load or a return. Returns a call of the master that is to be stored. The tag identifies job and minion, as
    /// the bus checks it; the body does not. Loads and calls only come from the master.
    fn store(&self, event: &Event) -> Result<Option<Call>, ReturnerError> {
        let parts: Vec<&str> = event.tag().split('/').skip(1).collect();
        let stored = match parts[..] {
            ["job", jid, "new"] => self.store_load(jid, event.data()).map(|()| None),
            ["job", jid, "ret", id] => self.store_minion_return(jid, id, event.data()).map(|()| None),
            ["run", jid, "ret"] if self.runner_returns => self.call_of(jid, event),
            ["wheel", jid, "ret"] => self.call_of(jid, event),
            _ => Ok(None),
        };
        match stored {
            Ok(call) => Ok(call),
            Err(CacheError::Returner(error)) => Err(error),
            Err(error) => {
                brine_bus::metrics::EVENTS_REFUSED.add(1);
                tracing::warn!(tag = event.tag(), seq = event.seq(), %error, "job event not stored");
                Ok(None)
            }
        }
    }

    fn store_load(&self, jid: &str, mut data: Map) -> Result<(), CacheError> {
        by_master(&data)?;
        data.insert("jid".into(), jid.into());
        let is_part = data.shift_remove(PART).is_some();
        let mut load = Load::from_map(whole_load(data))?;
        if is_part && let Some(known) = self.cache.get_load(load.jid())? {
            load = load.with_minions(known.minions());
        }
        Ok(self.cache.save_load(&load)?)
    }

    fn store_minion_return(&self, jid: &str, id: &str, mut data: Map) -> Result<(), CacheError> {
        if data.contains_key(NOT_CACHED) {
            return Ok(());
        }
        data.insert("jid".into(), jid.into());
        data.insert("id".into(), id.into());
        Ok(store_return(&*self.cache, &Return::from_map(without_envelope(data))?)?)
    }

    /// Returns the call whose end an event reports. The body is scanned without decoding it.
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
        // As in Salt, a call of an unknown function is no job; its event names no user.
        if !has_user || !is_cached {
            return Ok(None);
        }
        let jid = jid.parse().map_err(InvalidJob::from)?;
        Ok(Some(Call::new(self.id.clone(), jid, event.frame().slice_ref(event.body()))))
    }
}

fn by_master(data: &Map) -> Result<(), CacheError> {
    data.get(FROM).map_or(Ok(()), |from| Err(CacheError::From(from.clone())))
}

/// Stores a return, and the load of a job that was not published.
pub(crate) fn store_return(cache: &dyn Returner, one: &Return) -> Result<(), ReturnerError> {
    if let Some(load) = load_of_standalone(one)
        && cache.get_load(load.jid())?.is_none()
    {
        cache.save_load(&load)?;
    }
    cache.returner(one)
}

/// Returns the load of a job that was not published, such as one of a minion's schedule, from its return.
fn load_of_standalone(job_return: &Return) -> Option<Load> {
    let fields = job_return.map();
    let names = ["jid", "fun", "arg", "tgt", "tgt_type", "user", "metadata"];
    let mut load: Map = names.iter().filter_map(|name| Some(((*name).into(), fields.get(*name)?.clone()))).collect();
    load.contains_key("tgt").then(|| load.insert("minions".into(), list![job_return.id()]))?;
    Load::from_map(load).ok()
}

/// Returns the load in the event of a new job.
fn whole_load(mut data: Map) -> Map {
    if let Some(Value::Map(more)) = data.shift_remove(MORE) {
        data.extend(more);
    }
    data
}

/// Removes the fields of the message from a return.
pub(crate) fn without_envelope(mut data: Map) -> Map {
    data.retain(|name, _| !matches!(name.as_str(), Some("cmd" | "ts" | FROM | SENDER_STAMP)));
    data
}

/// Passes events to a returner of `event_return` until `shutdown`, without those of the deny list.
pub(crate) async fn return_events(
    mut events: Subscription,
    returner: Arc<dyn Returner>,
    deny: Option<GlobSet>,
    disk: Executor,
    shutdown: CancellationToken,
) {
    deliver(&mut events, &disk, shutdown, move |batch| {
        let is_wanted = |event: &&Event| deny.as_ref().is_none_or(|deny| !deny.is_match(event.tag()));
        let wanted: Vec<Event> = batch.iter().filter(is_wanted).cloned().collect();
        if wanted.is_empty() {
            return Ok(());
        }
        returner.event_return(&wanted).map_err(|error| Unstored { handled: 0, count: batch.len(), error })
    })
    .await;
}

/// Events that a returner did not store.
struct Unstored {
    /// The number of events of the batch that it stored before.
    handled: usize,
    /// The number of events that are dropped together if retries do not help.
    count: usize,
    error: ReturnerError,
}

/// Runs `take` on a blocking thread for each batch of events, and commits the cursor. Events that are not stored are
/// retried: indefinitely if the master's own store has failed, which recovers with the disk, and for about a minute
/// with other returners. Meanwhile the journal retains the following events.
async fn deliver(
    events: &mut Subscription,
    disk: &Executor,
    shutdown: CancellationToken,
    take: impl Fn(&[Event]) -> Result<(), Unstored> + Send + Sync + 'static,
) {
    let take = Arc::new(take);
    let mut passes = tokio::time::interval(PASS_INTERVAL);
    let mut passed = 0;
    loop {
        let batch = tokio::select! {
            batch = events.recv_many() => batch,
            _ = passes.tick() => {
                // The cursor passes other events, too: the journal need not retain them for this subscriber.
                let reached = events.position() - 1;
                if reached > passed {
                    passed = reached;
                    events.commit(reached);
                }
                continue;
            }
            () = shutdown.cancelled() => return,
        };
        let Some(batch) = batch else { return };
        let last = batch.last().map_or(0, Event::seq);
        let mut rest: Arc<[Event]> = batch.into();
        let mut tries = 0;
        while !rest.is_empty() {
            let (run, events) = (Arc::clone(&take), Arc::clone(&rest));
            let Unstored { handled, count, error } = match disk.run(move |_| run(&events)).await {
                Ok(Ok(())) => break,
                Ok(Err(unstored)) => unstored,
                // The executor stops with the master, or has logged a panic that a retry would repeat.
                Err(error) => {
                    tracing::error!(first = rest[0].seq(), last, %error, "storing events failed");
                    if shutdown.is_cancelled() {
                        return;
                    }
                    brine_job::metrics::RETURNS_LOST.add(rest.len() as u64);
                    break;
                }
            };
            tries = if handled > 0 { 1 } else { tries + 1 };
            let mut skipped = handled;
            let waits = matches!(error, ReturnerError::Store(_));
            if !waits && tries > TRIES {
                brine_job::metrics::RETURNS_LOST.add(count as u64);
                let (tag, seq) = (rest[handled].tag(), rest[handled].seq());
                tracing::error!(tag, seq, count, %error, "storing events failed for good: they are dropped");
                skipped += count;
                tries = 0;
            } else {
                if tries == 1 {
                    tracing::error!(tag = rest[handled].tag(), %error, "storing an event failed: it is retried");
                }
                let pause = (FIRST_PAUSE * 2u32.saturating_pow(tries.min(16))).min(LONGEST_PAUSE);
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = shutdown.cancelled() => return,
                }
            }
            rest = rest.get(skipped..).unwrap_or_default().into();
        }
        events.commit(last);
    }
}

#[cfg(test)]
mod tests {
    use brine_bus::store::{Store, StoreError};
    use brine_bus::{BusLimits, JournalLimits};
    use brine_runtime::executors::MayBlock;
    use brine_value::map;

    use super::*;

    /// Returns a bus with a journal, and the directory of its store.
    async fn journalled() -> (tempfile::TempDir, Bus) {
        let directory = tempfile::tempdir().unwrap();
        let (store, opened) = Store::open(&directory.path().join("store"), 1 << 20).unwrap();
        let (limits, disk) = (JournalLimits::default(), Executor::new("disk", 1, 8));
        let bus = Bus::with_journal(BusLimits::default(), store, opened, limits, &disk).await.unwrap();
        (directory, bus)
    }

    #[tokio::test]
    async fn the_cursor_passes_other_events() {
        let (_folder, bus) = journalled().await;
        let mut events = subscribe_jobs(&bus).unwrap();
        let shutdown = CancellationToken::new();
        let (stop, lags) = (shutdown.clone(), bus.clone());
        tokio::spawn(async move {
            deliver(&mut events, &Executor::new("disk", 1, 1), stop, |_| panic!("nothing is wanted")).await;
        });
        for n in 0..10 {
            bus.fire("other", &map! {"n" => n}).await.unwrap();
        }
        while lags.lags().iter().any(|(_, lag)| *lag > 0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        shutdown.cancel();
    }

    #[tokio::test]
    async fn events_are_retried_until_they_are_stored() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let (_folder, bus) = journalled().await;
        let mut events = subscribe_jobs(&bus).unwrap();
        let (shutdown, calls) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let (stored, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let stop = shutdown.clone();
        let task = tokio::spawn(async move {
            let take = move |batch: &[Event]| {
                for (handled, event) in batch.iter().enumerate() {
                    // Every other call fails.
                    if calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                        return Err(Unstored { handled, count: 1, error: ReturnerError::Store(StoreError::Closed) });
                    }
                    stored.send(event.seq()).unwrap();
                }
                Ok(())
            };
            deliver(&mut events, &Executor::new("disk", 1, 1), stop, take).await;
        });
        let mut published = Vec::new();
        for n in 0..5 {
            published.push(bus.fire("salt/job/1/new", &map! {"n" => n}).await.unwrap());
        }
        for seq in published {
            assert_eq!(seen.recv().await, Some(seq));
        }
        shutdown.cancel();
        task.await.unwrap();
    }

    #[test]
    fn calls_of_the_master_are_jobs_of_the_master_itself() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(&directory.path().join("store"), 1 << 20).unwrap();
        let store = store.blocking(&MayBlock::own_thread(runtime.handle().clone()));
        let cache: Arc<dyn Returner> =
            brine_returners::open("local_cache", &brine_returners::Options::new(&Map::new(), Some(store)))
                .unwrap()
                .into();
        let job_cache =
            JobCache { cache: Arc::clone(&cache), id: "host_master".parse().unwrap(), runner_returns: true };
        let body = |fun: &str| map! {"fun" => fun, "fun_args" => list!["orch.web"], "user" => "root", "return" => 1, "success" => true};
        let event = |tag: &str, body: &Map| Event::from_map(tag, body).unwrap();
        let store = |cache: &JobCache, event| assert!(cache.store_all(&[event]).is_ok());
        let jids: Vec<brine_ids::Jid> = (0..6).map(|_| brine_ids::Jid::new()).collect();
        let fire = |n: usize, kind: &str, body: &Map| {
            store(&job_cache, event(&format!("salt/{kind}/{}/ret", jids[n]), body));
        };
        fire(0, "run", &body("runner.state.orchestrate"));
        fire(1, "wheel", &body("wheel.key.accept"));
        // An unknown function, a forged event, and an event that is not a return.
        fire(2, "run", &map! {"fun" => "runner.no.such", "return" => "x", "retcode" => 254});
        let forged = Event::from_minion(&format!("salt/run/{}/ret", jids[3]), body("x"), &"web1".parse().unwrap());
        store(&job_cache, forged.unwrap().stamped(1, "now").unwrap());
        store(&job_cache, event(&format!("salt/run/{}/progress", jids[4]), &body("x")));
        let without = JobCache { runner_returns: false, ..job_cache.clone() };
        store(&without, event(&format!("salt/run/{}/ret", jids[5]), &body("runner.jobs.active")));
        let known: Vec<_> = cache.get_jids(None).unwrap().iter().map(|load| load.jid().clone()).collect();
        assert_eq!(known, [jids[1].clone(), jids[0].clone()]);
        let summary = cache.get_load(&jids[0]).unwrap().unwrap().summary();
        for (name, is) in [
            ("Function", Value::from("runner.state.orchestrate")),
            ("Arguments", list![]),
            ("Target", "host_master".into()),
            ("Target-type", "list".into()),
            ("User", "root".into()),
        ] {
            assert_eq!(summary.get(name), Some(&is), "{name}");
        }
        let returns = cache.get_jid(&jids[0]).unwrap();
        assert_eq!(returns, map! {"host_master" => map! {"return" => body("runner.state.orchestrate")}});
    }

    #[test]
    fn loads_are_stored_whole_and_without_message_fields() {
        let load = whole_load(map! {"jid" => "1", "fun" => "test.ping", MORE => map! {"ret" => "redis"}});
        assert_eq!(load, map! {"jid" => "1", "fun" => "test.ping", "ret" => "redis"});
        let standalone = map! {"jid" => "20261121000000000000", "id" => "m", "fun" => "f", "arg" => list![1], "tgt" => "m", "return" => 1};
        let load = load_of_standalone(&Return::from_map(standalone.clone()).unwrap()).unwrap();
        assert_eq!((load.arg(), load.minions().len(), load.map().contains_key("return")), (&[1.into()][..], 1, false));
        let published = standalone.into_iter().filter(|(name, _)| name.as_str() != Some("tgt")).collect();
        assert_eq!(load_of_standalone(&Return::from_map(published).unwrap()), None);
        let one = map! {"jid" => "1", "cmd" => "_return", "ts" => 5, "return" => true};
        assert_eq!(without_envelope(one), map! {"jid" => "1", "return" => true});
    }
}
