//! The time from an I/O error, after which redb refuses everything, until the database is reopened.
//!
//! The first error is kept, since redb names it only once. Reads wait for the reopening, but not for long: while a disk
//! stays unusable, readers would hold all threads that read.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The time after the first error, and after the begin of a read, in which reads wait.
#[cfg(not(test))]
const PATIENCE: Duration = Duration::from_secs(10);
#[cfg(test)]
const PATIENCE: Duration = Duration::from_secs(2);

/// The state of a database that must be reopened.
#[derive(Default)]
pub(super) struct Outage {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The first error, and its time.
    error: Option<(Instant, String)>,
    /// The database is not reopened any more.
    is_final: bool,
}

impl Outage {
    /// Records an error of the database. Returns the first one since it was opened.
    pub fn begin(&self, reason: String) -> String {
        self.state.lock().error.get_or_insert_with(|| (Instant::now(), reason)).1.clone()
    }

    /// Returns the first error since the database was opened, or this text.
    pub fn first_error(&self, otherwise: &str) -> String {
        self.state.lock().error.as_ref().map_or(otherwise, |(_, reason)| reason).to_owned()
    }

    /// Records that the database was reopened: waiting reads continue.
    pub fn end(&self) {
        self.state.lock().error = None;
        self.changed.notify_all();
    }

    /// Records that the database is closed for good: waiting reads fail.
    pub fn close(&self) {
        self.state.lock().is_final = true;
        self.changed.notify_all();
    }

    /// Waits until the database is reopened, which `is_over` tells. Returns whether it was in time for a read that began
    /// at this time.
    pub fn wait(&self, begun: Instant, is_over: impl Fn() -> bool) -> bool {
        let mut state = self.state.lock();
        while !is_over() {
            let since = state.error.as_ref().map_or(begun, |(since, _)| (*since).min(begun));
            if state.is_final || self.changed.wait_until(&mut state, since + PATIENCE).timed_out() {
                return is_over();
            }
        }
        true
    }
}
