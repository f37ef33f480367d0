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

use crate::publish::{MORE, PART};

/// The interval at which the cursor passes events that are not wanted.
const PASS_INTERVAL: Duration = Duration::from_secs(1);
/// The pauses between tries of events that cannot be stored.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// So often events are tried that a returner other than the master's store refuses: for about a minute.
const TRIES: u32 = 12;
/// The field of a return that the job cache does not keep.
pub(crate) const NOT_KEPT: &str = "_nocache";

/// The job cache, and what it needs to know of its master.
#[derive(Clone)]
pub(crate) struct JobCache {
    pub cache: Arc<dyn Returner>,
    /// The master's id, under which calls of its own functions are kept.
    pub id: MinionId,
    /// Whether calls of runner functions are kept (`runner_returns`).
    pub runner_returns: bool,
}

/// Keeps jobs and what minions return for them, and calls of runner and wheel functions, until `shutdown`.
pub(crate) async fn keep_jobs(
    bus: &Bus,
    cache: JobCache,
    disk: Executor,
    kept: Arc<watch::Sender<u64>>,
    shutdown: CancellationToken,
) {
    let mut events = match subscribe_jobs(bus) {
        Ok(events) => events,
        Err(error) => return tracing::error!(%error, "subscribing the job cache failed"),
    };
    hand_over(&mut events, &disk, shutdown, move |batch| {
        let stored = cache.keep_all(batch);
        let handled = stored.as_ref().map_or_else(|unstored| unstored.handled, |()| batch.len());
        if let Some(last) = batch[..handled].last() {
            kept.send_replace(last.seq());
        }
        stored
    })
    .await;
}

/// The subscription that [`keep_jobs`] wants.
pub(crate) fn subscribe_jobs(bus: &Bus) -> Result<Subscription, brine_bus::store::StoreError> {
    let prefixes = ["salt/job/", "salt/run/", "salt/wheel/"];
    bus.subscribe(Filter::Prefixes(prefixes.map(Into::into).into()), Start::Durable("job_cache".into()))
}

/// Why an event about a job is not stored.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error(transparent)]
    Malformed(#[from] InvalidJob),
    #[error("only the master publishes it, and it is from minion '{0}'")]
    From(Value),
    #[error(transparent)]
    Returner(#[from] ReturnerError),
}

impl JobCache {
    /// Stores what the events say. Calls of the master's own functions are stored together, as they are many.
    fn keep_all(&self, events: &[Event]) -> Result<(), Unstored> {
        let mut calls = Vec::new();
        let mut stored = Ok(());
        for (handled, event) in events.iter().enumerate() {
            match self.keep(event) {
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
            // The loads and returns among them are stored again with the next try, which changes nothing.
            let count = stored.as_ref().map_or_else(|unstored| unstored.handled, |()| events.len());
            return Err(Unstored { handled: 0, count, error });
        }
        stored
    }

    /// Stores a job's load or return; returns a call of the master that is to be stored. The tag decides whose it is, as
    /// the bus checks it; what the body says does not count. Loads and calls come from the master alone.
    fn keep(&self, event: &Event) -> Result<Option<Call>, ReturnerError> {
        let parts: Vec<&str> = event.tag().split('/').skip(1).collect();
        let kept = match parts[..] {
            ["job", jid, "new"] => self.keep_load(jid, event.data()).map(|()| None),
            ["job", jid, "ret", id] => self.keep_return(jid, id, event.data()).map(|()| None),
            ["run", jid, "ret"] if self.runner_returns => self.call_of(jid, event),
            ["wheel", jid, "ret"] => self.call_of(jid, event),
            _ => Ok(None),
        };
        match kept {
            Ok(call) => Ok(call),
            Err(KeepError::Returner(error)) => Err(error),
            Err(error) => {
                brine_bus::metrics::EVENTS_REFUSED.add(1);
                tracing::warn!(tag = event.tag(), seq = event.seq(), %error, "job event not stored");
                Ok(None)
            }
        }
    }

    fn keep_load(&self, jid: &str, mut data: Map) -> Result<(), KeepError> {
        by_master(&data)?;
        data.insert("jid".into(), jid.into());
        let is_part = data.shift_remove(PART).is_some();
        let mut load = Load::from_map(whole_load(data))?;
        if is_part && let Some(known) = self.cache.get_load(load.jid())? {
            load = load.with_minions(known.minions());
        }
        Ok(self.cache.save_load(&load)?)
    }

    fn keep_return(&self, jid: &str, id: &str, mut data: Map) -> Result<(), KeepError> {
        if data.contains_key(NOT_KEPT) {
            return Ok(());
        }
        data.insert("jid".into(), jid.into());
        data.insert("id".into(), id.into());
        Ok(store_return(&*self.cache, &Return::from_map(without_way(data))?)?)
    }

    /// Returns the call whose end an event tells. The body is not unpacked, only looked at.
    fn call_of(&self, jid: &str, event: &Event) -> Result<Option<Call>, KeepError> {
        let (mut from, mut has_user, mut is_kept) = (None, false, true);
        // The body was checked when the event was made.
        _ = msgpack::scan(event.body(), |entry| match entry.key {
            Some(FROM) => from = msgpack::unpack(entry.value).ok(),
            Some("user") => has_user = true,
            Some(NOT_KEPT) => is_kept = false,
            _ => {}
        });
        if let Some(from) = from {
            return Err(KeepError::From(from));
        }
        // As in Salt, a call of an unknown function is no job; its event names no user.
        if !has_user || !is_kept {
            return Ok(None);
        }
        let jid = jid.parse().map_err(InvalidJob::from)?;
        Ok(Some(Call::new(self.id.clone(), jid, event.frame().slice_ref(event.body()))))
    }
}

fn by_master(data: &Map) -> Result<(), KeepError> {
    data.get(FROM).map_or(Ok(()), |from| Err(KeepError::From(from.clone())))
}

/// Stores a return, and the load of a job that nobody published.
pub(crate) fn store_return(cache: &dyn Returner, one: &Return) -> Result<(), ReturnerError> {
    if let Some(load) = load_of_standalone(one)
        && cache.get_load(load.jid())?.is_none()
    {
        cache.save_load(&load)?;
    }
    cache.returner(one)
}

/// The load of a job that nobody published, such as one of a minion's schedule: its return says what was asked.
fn load_of_standalone(job_return: &Return) -> Option<Load> {
    let fields = job_return.map();
    let names = ["jid", "fun", "arg", "tgt", "tgt_type", "user", "metadata"];
    let mut load: Map = names.iter().filter_map(|name| Some(((*name).into(), fields.get(*name)?.clone()))).collect();
    load.contains_key("tgt").then(|| load.insert("minions".into(), list![job_return.id()]))?;
    Load::from_map(load).ok()
}

/// A job's load from the event that announces it.
fn whole_load(mut data: Map) -> Map {
    if let Some(Value::Map(more)) = data.shift_remove(MORE) {
        data.extend(more);
    }
    data
}

/// A return without what belongs to the message that it came in.
pub(crate) fn without_way(mut data: Map) -> Map {
    data.retain(|name, _| !matches!(name.as_str(), Some("cmd" | "ts" | FROM | SENDER_STAMP)));
    data
}

/// Hands every event that passes the lists to one returner of `event_return`, until `shutdown`.
pub(crate) async fn return_events(
    mut events: Subscription,
    returner: Arc<dyn Returner>,
    deny: Option<GlobSet>,
    disk: Executor,
    shutdown: CancellationToken,
) {
    hand_over(&mut events, &disk, shutdown, move |batch| {
        let is_wanted = |event: &&Event| deny.as_ref().is_none_or(|deny| !deny.is_match(event.tag()));
        let wanted: Vec<Event> = batch.iter().filter(is_wanted).cloned().collect();
        if wanted.is_empty() {
            return Ok(());
        }
        returner.event_return(&wanted).map_err(|error| Unstored { handled: 0, count: batch.len(), error })
    })
    .await;
}

/// Events that a returner could not store.
struct Unstored {
    /// How many of the batch it has stored before.
    handled: usize,
    /// How many are given up together if it never can.
    count: usize,
    error: ReturnerError,
}

/// Runs `take` on a blocking thread for each batch of events, and remembers how far it got. Events that cannot be stored
/// are tried again: for as long as it takes where the master's own store has failed, as it recovers when the disk does, and
/// for about a minute with other returners. Meanwhile the journal keeps what follows.
async fn hand_over(
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
                // Events that are not wanted are passed, too: the journal need not keep them for this subscriber.
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
                // The executor stops with the master, or has logged a panic that would come again.
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
                tracing::error!(tag, seq, count, %error, "storing events failed for good: they are left out");
                skipped += count;
                tries = 0;
            } else {
                if tries == 1 {
                    tracing::error!(tag = rest[handled].tag(), %error, "storing an event failed: it is tried again");
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

    #[tokio::test]
    async fn events_that_are_not_wanted_are_passed() {
        let folder = tempfile::tempdir().unwrap();
        let (store, opened) = Store::open(&folder.path().join("store"), 1 << 20).unwrap();
        let bus = Bus::with_journal(
            BusLimits::default(),
            store,
            opened,
            JournalLimits::default(),
            &Executor::new("disk", 1, 8),
        )
        .await
        .unwrap();
        let mut events = subscribe_jobs(&bus).unwrap();
        let shutdown = CancellationToken::new();
        let (stop, lags) = (shutdown.clone(), bus.clone());
        tokio::spawn(async move {
            hand_over(&mut events, &Executor::new("disk", 1, 1), stop, |_| panic!("nothing is wanted")).await;
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
    async fn events_are_tried_again_until_the_store_has_them() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let (store, opened) = Store::open(&folder.path().join("store"), 1 << 20).unwrap();
        let bus = Bus::with_journal(
            BusLimits::default(),
            store,
            opened,
            JournalLimits::default(),
            &Executor::new("disk", 1, 8),
        )
        .await
        .unwrap();
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
            hand_over(&mut events, &Executor::new("disk", 1, 1), stop, take).await;
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
    fn calls_of_the_master_are_jobs_at_itself() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(&folder.path().join("store"), 1 << 20).unwrap();
        let store = store.blocking(&MayBlock::own_thread(runtime.handle().clone()));
        let cache: Arc<dyn Returner> =
            brine_returners::open("local_cache", &brine_returners::Options::new(&Map::new(), Some(store)))
                .unwrap()
                .into();
        let keeper = JobCache { cache: Arc::clone(&cache), id: "host_master".parse().unwrap(), runner_returns: true };
        let body = |fun: &str| map! {"fun" => fun, "fun_args" => list!["orch.web"], "user" => "root", "return" => 1, "success" => true};
        let event = |tag: &str, body: &Map| Event::from_map(tag, body).unwrap();
        let keep = |cache: &JobCache, event| assert!(cache.keep_all(&[event]).is_ok());
        let jids: Vec<brine_ids::Jid> = (0..6).map(|_| brine_ids::Jid::new()).collect();
        let fire = |n: usize, kind: &str, body: &Map| {
            keep(&keeper, event(&format!("salt/{kind}/{}/ret", jids[n]), body));
        };
        fire(0, "run", &body("runner.state.orchestrate"));
        fire(1, "wheel", &body("wheel.key.accept"));
        // An unknown function, a forged one, and what is no return.
        fire(2, "run", &map! {"fun" => "runner.no.such", "return" => "x", "retcode" => 254});
        let forged = Event::from_minion(&format!("salt/run/{}/ret", jids[3]), body("x"), &"web1".parse().unwrap());
        keep(&keeper, forged.unwrap().stamped(1, "now").unwrap());
        keep(&keeper, event(&format!("salt/run/{}/progress", jids[4]), &body("x")));
        let without = JobCache { runner_returns: false, ..keeper.clone() };
        keep(&without, event(&format!("salt/run/{}/ret", jids[5]), &body("runner.jobs.active")));
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
    fn the_cache_gets_all_of_a_load_and_nothing_of_a_message() {
        let load = whole_load(map! {"jid" => "1", "fun" => "test.ping", MORE => map! {"ret" => "redis"}});
        assert_eq!(load, map! {"jid" => "1", "fun" => "test.ping", "ret" => "redis"});
        let standalone = map! {"jid" => "20261121000000000000", "id" => "m", "fun" => "f", "arg" => list![1], "tgt" => "m", "return" => 1};
        let load = load_of_standalone(&Return::from_map(standalone.clone()).unwrap()).unwrap();
        assert_eq!((load.arg(), load.minions().len(), load.map().contains_key("return")), (&[1.into()][..], 1, false));
        let published = standalone.into_iter().filter(|(name, _)| name.as_str() != Some("tgt")).collect();
        assert_eq!(load_of_standalone(&Return::from_map(published).unwrap()), None);
        let one = map! {"jid" => "1", "cmd" => "_return", "ts" => 5, "return" => true};
        assert_eq!(without_way(one), map! {"jid" => "1", "return" => true});
    }
}
