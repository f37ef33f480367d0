//! Counters: what is worth counting, in one place. Nothing is lost without one of these going up.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only rises.
#[derive(Debug)]
pub struct Counter {
    /// Its name, as Prometheus wants it.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    value: AtomicU64,
}

impl Counter {
    const fn new(name: &'static str, help: &'static str) -> Self {
        Counter { name, help, value: AtomicU64::new(0) }
    }

    /// Counts.
    pub fn add(&self, count: u64) {
        self.value.fetch_add(count, Ordering::Relaxed);
    }

    /// What has been counted so far.
    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($counter:ident = $name:literal, $help:literal;)*) => {
        $(#[doc = $help] pub static $counter: Counter = Counter::new($name, $help);)*

        /// All counters.
        pub static ALL: &[&Counter] = &[$(&$counter),*];
    };
}

counters! {
    ACCEPT_FAILED = "brine_accept_failed_total", "Connections that could not be taken.";
    CONNECTIONS_REFUSED = "brine_connections_refused_total", "Connections that were closed because of what they sent.";
    REQUESTS = "brine_requests_total", "Requests taken.";
    REQUESTS_REFUSED = "brine_requests_refused_total", "Requests refused: malformed, unknown, or not allowed.";
    REPLIES_LOST = "brine_replies_lost_total", "Replies whose receiver went away.";
    PUBLISHES = "brine_publishes_total", "Jobs published.";
    PUBLISHES_LOST = "brine_publishes_lost_total", "Publishes that a too slow subscriber missed.";
    AUTHENTICATIONS = "brine_authentications_total", "Authentications that were accepted.";
    AUTHENTICATIONS_REFUSED = "brine_authentications_refused_total", "Authentications that were pending, rejected, denied or malformed.";
    EVENTS = "brine_events_total", "Events that went over the bus.";
    EVENTS_REFUSED = "brine_events_refused_total", "Events that were refused: malformed or too large.";
    EVENTS_MISSED = "brine_events_missed_total", "Events that a subscriber missed because there is no journal or they had left it.";
    JOURNAL_FAILED = "brine_journal_failed_total", "Events that could not be written to the journal.";
    RETURNS = "brine_returns_total", "Job returns taken.";
    RETURNS_LOST = "brine_returns_lost_total", "Job returns that a returner could not keep.";
    REACTIONS = "brine_reactions_total", "Reactions handed over.";
    REACTIONS_FAILED = "brine_reactions_failed_total", "Reactions that failed.";
    REACTOR_ERRORS = "brine_reactor_errors_total", "Reactor SLS files that could not be read, rendered or compiled.";
}

/// All counters as Prometheus text.
pub fn prometheus() -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for counter in ALL {
        let Counter { name, help, .. } = counter;
        // Writing into a `String` cannot fail.
        _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {}", counter.get());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_shown_as_prometheus_wants_them() {
        REPLIES_LOST.add(2);
        let text = prometheus();
        assert!(text.contains("# TYPE brine_replies_lost_total counter\nbrine_replies_lost_total "), "{text}");
        assert_eq!(text.lines().count(), ALL.len() * 3);
    }
}
