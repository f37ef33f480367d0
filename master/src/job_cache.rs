//! The job cache and the event returners: durable subscribers of the bus that hand events to returners.

use std::sync::Arc;
use std::time::Duration;

use brine_core::bus::{Bus, Filter, Start, Subscription};
use brine_core::event::{Event, FROM, SENDER_STAMP};
use brine_core::executors::Executor;
use brine_core::glob::GlobSet;
use brine_core::job::{Load, Return};
use brine_core::{Map, Value, list, metrics};
use brine_returners::{Returner, ReturnerError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::publish::MORE;

/// The interval at which the cursor passes events that are not wanted.
const PASS_INTERVAL: Duration = Duration::from_secs(1);
/// The pauses between tries of events that cannot be stored.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// So often events are tried that a returner other than the master's store refuses: for about a minute.
const TRIES: u32 = 12;
/// The field of a return that the job cache does not keep.
pub(crate) const NOT_KEPT: &str = "_nocache";

/// Keeps jobs and what minions return for them, until `shutdown`.
pub(crate) async fn keep_jobs(
    bus: &Bus,
    cache: Arc<dyn Returner>,
    disk: Executor,
    kept: Arc<watch::Sender<u64>>,
    shutdown: CancellationToken,
) {
    let mut events = match subscribe_jobs(bus) {
        Ok(events) => events,
        Err(error) => return tracing::error!(%error, "subscribing the job cache failed"),
    };
    hand_over(&mut events, &disk, shutdown, move |batch| {
        for (handled, event) in batch.iter().enumerate() {
            if let Err(error) = keep_job(&*cache, event) {
                return Err(Unstored { handled, count: 1, error });
            }
            kept.send_replace(event.seq());
        }
        Ok(())
    })
    .await;
}

/// The subscription that [`keep_jobs`] wants.
pub(crate) fn subscribe_jobs(bus: &Bus) -> Result<Subscription, brine_core::store::StoreError> {
    bus.subscribe(Filter::prefix("salt/job/"), Start::Durable("job_cache".into()))
}

/// Stores a job's load or return. The tag decides whose it is, as the bus checks it; what the body says does not
/// count. Loads come from the master alone.
fn keep_job(cache: &dyn Returner, event: &Event) -> Result<(), ReturnerError> {
    let malformed = |error: &dyn std::fmt::Display| {
        metrics::EVENTS_REFUSED.add(1);
        tracing::warn!(tag = event.tag(), seq = event.seq(), %error, "job event not stored");
    };
    let parts: Vec<&str> = event.tag().split('/').skip(2).collect();
    match parts[..] {
        [jid, "new"] => {
            let mut data = event.data();
            if let Some(from) = data.get(FROM) {
                malformed(&format!("only the master announces jobs, and it is from minion '{from}'"));
                return Ok(());
            }
            data.insert("jid".into(), jid.into());
            match Load::from_map(whole_load(data)) {
                Ok(load) => return cache.save_load(&load),
                Err(error) => malformed(&error),
            }
        }
        [jid, "ret", id] => {
            let mut data = event.data();
            if data.contains_key(NOT_KEPT) {
                return Ok(());
            }
            data.insert("jid".into(), jid.into());
            data.insert("id".into(), id.into());
            match Return::from_map(without_way(data)) {
                Ok(job_return) => {
                    if let Some(load) = load_of_standalone(&job_return)
                        && cache.get_load(load.jid())?.is_none()
                    {
                        cache.save_load(&load)?;
                    }
                    return cache.returner(&job_return);
                }
                Err(error) => malformed(&error),
            }
        }
        _ => {}
    }
    Ok(())
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
fn without_way(mut data: Map) -> Map {
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
                    metrics::RETURNS_LOST.add(rest.len() as u64);
                    break;
                }
            };
            tries = if handled > 0 { 1 } else { tries + 1 };
            let mut skipped = handled;
            let waits = matches!(error, ReturnerError::Store(_));
            if !waits && tries > TRIES {
                metrics::RETURNS_LOST.add(count as u64);
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
    use brine_core::bus::{BusLimits, JournalLimits};
    use brine_core::map;
    use brine_core::store::{Store, StoreError};

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
