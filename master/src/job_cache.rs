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

/// How often it is remembered how far the events were passed that are not wanted.
const LOOK: Duration = Duration::from_secs(1);
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
        let last = batch.last().map_or(0, Event::seq);
        for event in batch {
            if let Err(error) = keep_job(&*cache, &event) {
                metrics::RETURNS_LOST.add(1);
                tracing::error!(tag = event.tag(), seq = event.seq(), %error, "the job cache could not keep this");
            }
        }
        kept.send_replace(last);
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
    hand_over(&mut events, &disk, shutdown, move |mut batch: Vec<Event>| {
        batch.retain(|event| deny.as_ref().is_none_or(|deny| !deny.is_match(event.tag())));
        if batch.is_empty() {
            return;
        }
        if let Err(error) = returner.event_return(&batch) {
            metrics::RETURNS_LOST.add(batch.len() as u64);
            tracing::error!(returner = returner.name(), events = batch.len(), %error, "events could not be returned");
        }
    })
    .await;
}

/// Runs `take` on a blocking thread for each batch of events, and remembers how far it got.
async fn hand_over(
    events: &mut Subscription,
    disk: &Executor,
    shutdown: CancellationToken,
    take: impl Fn(Vec<Event>) + Send + Sync + 'static,
) {
    let take = Arc::new(take);
    let mut looks = tokio::time::interval(LOOK);
    let mut passed = 0;
    loop {
        let batch = tokio::select! {
            batch = events.recv_many() => batch,
            _ = looks.tick() => {
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
        let take = Arc::clone(&take);
        if disk.run(move |_| take(batch)).await.is_ok() {
            events.commit(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_core::bus::{BusLimits, JournalLimits};
    use brine_core::map;
    use brine_core::store::Store;

    use super::*;

    #[tokio::test]
    async fn events_that_are_not_wanted_are_passed() {
        let folder = tempfile::tempdir().unwrap();
        let (store, opened) = Store::open(&folder.path().join("store"), 1 << 20).unwrap();
        let bus = Bus::with_journal(BusLimits::default(), store, opened, JournalLimits::default()).unwrap();
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
