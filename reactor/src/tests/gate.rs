//! The gate of a cluster: reactions run on the master that it selects.

use std::pin::Pin;
use std::sync::Arc;

use brine_event::Event;
use brine_value::{list, map};
use parking_lot::Mutex;

use super::{next, start_with, write};
use crate::{Admission, Gate};

/// Another master has reacted to the events up to this number.
const REACTED: u64 = 3;

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
