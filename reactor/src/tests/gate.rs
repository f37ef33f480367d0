//! The gate of a cluster: reactions run on the master that it selects.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use brine_event::Event;
use brine_value::{list, map};
use parking_lot::Mutex;

use super::{next, start_with, write};
use crate::{Admission, Gate};

/// Another master has reacted to the events up to this number.
const REACTED: u64 = 3;
/// The term of [`LeaderGate`].
const TERM: u64 = 1;

/// Records the sequence numbers of the events that the gate decides about.
#[derive(Default)]
struct RecordingGate(Mutex<Vec<u64>>);

impl Gate for RecordingGate {
    fn admit<'a>(&'a self, event: &'a Event) -> Pin<Box<dyn Future<Output = Admission> + Send + 'a>> {
        self.0.lock().push(event.seq());
        let admission =
            if event.seq() <= REACTED { Admission::OtherMaster } else { Admission::ThisMaster { term: event.seq() } };
        Box::pin(std::future::ready(admission))
    }

    fn is_leader(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reactions_run_on_the_master_that_the_gate_selects() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "a.sls", "a:\n  local.test.ping:\n    - tgt: minion{{ data['number'] }}\n");
    let asked = Arc::new(RecordingGate::default());
    let gate = Arc::clone(&asked);
    let opts = map! {"reactor" => list![map! {"t" => list![file]}]};
    let mut running = start_with(directory.path(), &opts, move |options| options.gate = Some(gate.clone()));
    running.bus.fire("other", &map! {}).await.unwrap();
    for number in 2..=5 {
        running.bus.fire("t", &map! {"number" => number}).await.unwrap();
    }
    for expected in ["minion4", "minion5"] {
        let (reaction, _) = next(&mut running).await;
        assert!(format!("{reaction:?}").contains(expected), "{reaction:?}");
    }
    // The gate is not asked about events without an entry.
    assert_eq!(*asked.0.lock(), [2, 3, 4, 5]);
}

/// The gate of a leader; counts the offers of the rule state.
#[derive(Default)]
struct LeaderGate(AtomicUsize);

impl Gate for LeaderGate {
    fn admit<'a>(&'a self, _: &'a Event) -> Pin<Box<dyn Future<Output = Admission> + Send + 'a>> {
        Box::pin(std::future::ready(Admission::ThisMaster { term: TERM }))
    }

    fn is_leader(&self) -> bool {
        true
    }

    fn term(&self) -> Option<u64> {
        Some(TERM)
    }

    fn offer_rule_state(&self, _: Vec<u8>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_state_is_offered_while_events_arrive_without_a_pause() {
    let directory = tempfile::tempdir().unwrap();
    let leader = Arc::new(LeaderGate::default());
    let gate = Arc::clone(&leader);
    let running = start_with(directory.path(), &map! {}, move |options| options.gate = Some(gate.clone()));
    let rule = "logins: {rule.count: [{tag: login}, {count: 1000000}, {within: 60}, {react: /x.sls}]}";
    assert_eq!(running.reactor.set_rules(&[write(directory.path(), "rules.sls", rule)]).unwrap(), [""; 0]);
    // Two offers: the first one may be due before the events arrive.
    let offers = async {
        while leader.0.load(Ordering::Relaxed) < 2 {
            running.bus.fire("login", &map! {}).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), offers).await.expect("the state is offered");
}

/// The gate of a follower, which never decides: events wait there until the leader has reacted to them.
#[derive(Default)]
struct WaitingGate(Mutex<Vec<u64>>, tokio::sync::Notify);

impl Gate for WaitingGate {
    fn admit<'a>(&'a self, event: &'a Event) -> Pin<Box<dyn Future<Output = Admission> + Send + 'a>> {
        self.0.lock().push(event.seq());
        self.1.notify_one();
        Box::pin(std::future::pending())
    }

    fn is_leader(&self) -> bool {
        false
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_at_the_gate_keeps_the_cursor_behind_the_waiting_event() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "a.sls", "a:\n  local.test.ping:\n    - tgt: minion{{ data['number'] }}\n");
    let opts = map! {"reactor" => list![map! {"t" => list![file]}]};
    let waiting = Arc::new(WaitingGate::default());
    let gate = Arc::clone(&waiting);
    let running = start_with(directory.path(), &opts, move |options| options.gate = Some(gate.clone()));
    running.bus.fire("other", &map! {}).await.unwrap();
    let seq = running.bus.fire("t", &map! {"number" => 7}).await.unwrap();
    waiting.1.notified().await;
    running.shutdown.cancel();
    running.task.await.unwrap();
    // The successor on this host, as a leader.
    let gate = Arc::new(RecordingGate::default());
    let recording = Arc::clone(&gate);
    for number in 8..=9 {
        running.bus.fire("t", &map! {"number" => number}).await.unwrap();
    }
    let again = super::start_on(running.bus.clone(), running.store.clone(), directory.path(), &opts, move |options| {
        options.gate = Some(recording.clone());
    });
    let asked = async {
        while gate.0.lock().len() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asked).await.expect("the waiting event is read again");
    assert_eq!(gate.0.lock()[0], seq);
    again.shutdown.cancel();
}
