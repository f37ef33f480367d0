//! What the fleet did during the last day: the outcome of each job, the last sign of life and the last highstate of each
//! minion, the states that failed, and the rate of events. Views of the fleet ask for it; nothing is read before.
//!
//! It is counted from the journal, which each view reads on from where the last one ended, a bounded number of events at
//! a time. `tally.rs` has the counts, `states.rs` reads the returns of state runs, `systems.rs` the grains.

mod states;
mod systems;
mod tally;

use std::time::{Duration, Instant};

use brine_bus::store::StoreError;
use brine_bus::{Bus, TimeOrSeq};
use brine_runtime::executors::MayBlock;
use parking_lot::{Mutex, MutexGuard};

pub use states::StateRun;
pub use systems::{System, Systems};
pub use tally::{FailedState, JobOutcome, MinionActivity, Minute, ORCHESTRATIONS, Tally};

/// The time that is counted, in microseconds.
pub const DAY: u64 = 86_400_000_000;
/// The events that one view reads, and the time that it takes for them: a further view reads the rest.
const MAX_EVENTS: usize = 100_000;
const MAX_TIME: Duration = Duration::from_secs(2);
/// The number of events that are read at once.
const PAGE: usize = 1024;

/// The activity of a fleet.
#[derive(Default)]
pub struct Activity {
    state: Mutex<State>,
    /// The systems of the minions.
    pub systems: Mutex<Systems>,
}

/// The counts, and the number of the next event to be counted.
#[derive(Default)]
pub struct State {
    next: Option<u64>,
    /// The counts so far.
    pub tally: Tally,
    /// Whether all events of the last day are counted.
    pub is_complete: bool,
}

impl Activity {
    /// Counts events that were published since the last call, and returns the counts. No other view can read them until
    /// the result is dropped.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn read(&self, thread: &MayBlock, bus: &Bus, now: u64) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.state.lock();
        let begun = Instant::now();
        let mut read = 0;
        state.is_complete = false;
        loop {
            let from = match state.next {
                Some(seq) => TimeOrSeq::Seq(seq),
                None => TimeOrSeq::Time(now.saturating_sub(DAY)),
            };
            let page = bus.read(thread, from, PAGE)?;
            let Some(last) = page.last() else {
                if state.next.is_none() {
                    // Without a journal, events are found by their numbers alone.
                    state.next = Some(1);
                    continue;
                }
                state.is_complete = true;
                break;
            };
            state.next = Some(last.seq() + 1);
            read += page.len();
            for event in &page {
                state.tally.count(event);
            }
            if read >= MAX_EVENTS || begun.elapsed() >= MAX_TIME {
                break;
            }
        }
        state.tally.forget_before(now.saturating_sub(DAY));
        Ok(state)
    }
}

#[cfg(test)]
mod tests;
