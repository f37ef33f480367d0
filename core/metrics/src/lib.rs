//! Metrics: every counter, gauge and histogram, and their exposition as Prometheus text. Every loss increments one of
//! them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::RwLock;

/// The maximum number of label sets of a family; further ones share `(other)`.
const LABELS: usize = 10_000;

/// A number that only increases.
#[derive(Debug)]
pub struct Counter {
    /// Its Prometheus name.
    pub name: &'static str,
    /// Its help text.
    pub help: &'static str,
    value: AtomicU64,
}

impl Counter {
    const fn new(name: &'static str, help: &'static str) -> Self {
        Counter { name, help, value: AtomicU64::new(0) }
    }

    /// Increases the counter.
    pub fn add(&self, count: u64) {
        self.value.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the current value.
    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

/// A number that increases and decreases.
#[derive(Debug)]
pub struct Gauge {
    /// Its Prometheus name.
    pub name: &'static str,
    /// Its help text.
    pub help: &'static str,
    value: AtomicI64,
}

impl Gauge {
    const fn new(name: &'static str, help: &'static str) -> Self {
        Gauge { name, help, value: AtomicI64::new(0) }
    }

    /// Sets the value.
    pub fn set(&self, value: u64) {
        self.value.store(i64::try_from(value).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Increases the value.
    pub fn add(&self, by: u64) {
        self.value.fetch_add(i64::try_from(by).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Decreases the value.
    pub fn sub(&self, by: u64) {
        self.value.fetch_sub(i64::try_from(by).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Returns the current value.
    pub fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }
}

/// A metric with labels.
#[derive(Debug)]
pub struct Family {
    /// Its Prometheus name.
    pub name: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    children: RwLock<BTreeMap<Vec<String>, Arc<Child>>>,
}

/// The value of a family for one set of labels.
#[derive(Debug, Default)]
pub struct Child(AtomicU64);

impl Child {
    /// Increases the value.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Sets the value, for families of gauges.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns the current value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Family {
    const fn new(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Self {
        Family { name, help, labels, children: RwLock::new(BTreeMap::new()) }
    }

    /// Returns the value for these label values, creating it at 0.
    pub fn with(&self, values: &[&str]) -> Arc<Child> {
        let key: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        if let Some(child) = self.children.read().get(&key) {
            return Arc::clone(child);
        }
        let mut children = self.children.write();
        let key = if children.len() < LABELS { key } else { vec!["(other)".to_owned(); key.len()] };
        Arc::clone(children.entry(key).or_default())
    }

    /// Returns all values with their label values.
    pub fn all(&self) -> Vec<(Vec<String>, u64)> {
        self.children.read().iter().map(|(values, child)| (values.clone(), child.get())).collect()
    }
}

/// The upper bounds of the buckets of a histogram, in seconds.
const BUCKETS: [f64; 12] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

/// A distribution of durations.
#[derive(Debug)]
pub struct Histogram {
    /// Its Prometheus name.
    pub name: &'static str,
    /// Its help text.
    pub help: &'static str,
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Histogram {
    const fn new(name: &'static str, help: &'static str) -> Self {
        let buckets = [const { AtomicU64::new(0) }; BUCKETS.len()];
        Histogram { name, help, buckets, count: AtomicU64::new(0), micros: AtomicU64::new(0) }
    }

    /// Adds a duration in seconds.
    pub fn observe(&self, seconds: f64) {
        if let Some(bucket) = BUCKETS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add((seconds.max(0.0) * 1e6) as u64, Ordering::Relaxed);
    }

    /// Returns the number of durations and their sum in seconds.
    pub fn sum(&self) -> (u64, f64) {
        (self.count.load(Ordering::Relaxed), self.micros.load(Ordering::Relaxed) as f64 / 1e6)
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
    ACCEPT_FAILED = "brine_accept_failed_total", "Incoming connections that could not be accepted.";
    CONNECTIONS_REFUSED = "brine_connections_refused_total", "Connections closed because of an invalid handshake or message.";
    CONNECTIONS_LIMITED = "brine_connections_limited_total", "Connections closed on arrival because of `max_connections` or `max_connections_per_address`.";
    CONNECTIONS_EVICTED = "brine_connections_evicted_total", "Idle connections of unauthenticated peers closed in favour of new ones.";
    MESSAGES_DROPPED = "brine_messages_dropped_total", "Messages dropped because they exceed the size or memory limit of unauthenticated peers.";
    SUBSCRIBERS_DROPPED = "brine_subscribers_dropped_total", "Subscribers of the publish port disconnected because they lagged too far behind.";
    TASKS_PANICKED = "brine_tasks_panicked_total", "Panics in tasks that handle a connection or a request.";
    REQUESTS = "brine_requests_total", "Requests received.";
    REQUESTS_REFUSED = "brine_requests_refused_total", "Requests refused: malformed, unknown or not permitted.";
    REPLIES_LOST = "brine_replies_lost_total", "Replies whose receiver had disconnected.";
    PUBLISHES = "brine_publishes_total", "Jobs published.";
    PUBLISHES_LOST = "brine_publishes_lost_total", "Publishes dropped for a subscriber that lagged too far behind.";
    AUTHENTICATIONS = "brine_authentications_total", "Authentications accepted.";
    AUTHENTICATIONS_REFUSED = "brine_authentications_refused_total", "Authentications not accepted: pending, rejected, denied, malformed, or above a limit.";
    EVENTS = "brine_events_total", "Events published on the bus.";
    EVENT_BYTES = "brine_event_bytes_total", "Bytes of the events published on the bus.";
    EVENTS_REFUSED = "brine_events_refused_total", "Events refused: malformed, too large, or with a tag that the sender may not use.";
    EVENTS_MISSED = "brine_events_missed_total", "Events that a subscriber missed: there is no journal, or they had been removed from it.";
    JOURNAL_FAILED = "brine_journal_failed_total", "Events that could not be written to the journal.";
    TASKS_FAILED = "brine_tasks_failed_total", "Long-running tasks of a daemon that panicked or ended unexpectedly.";
    PUBLISHES_CAUGHT_UP = "brine_publishes_caught_up_total", "Jobs delivered late to minions that were disconnected when they were published.";
    PUBLISHES_MISSED = "brine_publishes_missed_total", "Jobs that a reconnected minion could not be given: too old, or too many.";
    JOURNAL_RESTARTS = "brine_journal_restarts_total", "Restarts of the journal writer after a panic.";
    STORE_FAILURES = "brine_store_failures_total", "Transitions of the store to its failed state: disk full, read-only or broken.";
    STORE_REFUSED = "brine_store_refused_total", "Writes refused by the store: it had failed, or its queue was full.";
    STORE_DAMAGED = "brine_store_damaged_total", "Reads and writes that hit a damaged page or row of the store.";
    STORE_REPLACED = "brine_store_replaced_total", "Stores damaged beyond repair at run time, moved aside and replaced by an empty one.";
    RETURNS = "brine_returns_total", "Job returns received.";
    RETURNS_TRIMMED = "brine_returns_trimmed_total", "Returns above `max_event_size` whose events were trimmed.";
    RETURNS_LOST = "brine_returns_lost_total", "Job returns that a returner could not store, or that a minion dropped before its master accepted them.";
    RETURNS_RETRIED = "brine_returns_retried_total", "Job returns that a minion kept for retry because its master did not accept them.";
    OUTPUT_CUT = "brine_command_output_cut_total", "Command outputs truncated at `cmd_output_limit`.";
    MINION_EVENTS_LOST = "brine_minion_events_lost_total", "Events of a minion that its master did not accept in time.";
    JOBS_INTERRUPTED = "brine_jobs_interrupted_total", "Jobs interrupted because the minion was killed.";
    JOBS_REFUSED = "brine_jobs_refused_total", "Jobs that a minion refused because its queue was full.";
    REACTIONS = "brine_reactions_total", "Reactions dispatched.";
    TEMPLATE_LIMITS_EXCEEDED = "brine_template_limits_exceeded_total", "Renders that exceeded `template_fuel`, `template_memory` or `template_output`.";
    REACTIONS_FAILED = "brine_reactions_failed_total", "Reactions that failed.";
    REACTIONS_RETRIED = "brine_reactions_retried_total", "Retries of reactions after a temporary failure.";
    REACTIONS_LIMITED = "brine_reactions_limited_total", "Reactions suppressed by `reactor_rate_limit`, `reactor_cooldown` or `reactor_debounce`.";
    REACTIONS_KNOWN = "brine_reactions_known_total", "Reactions not dispatched again after a restart because they had been dispatched before it.";
    REACTIONS_FORGOTTEN = "brine_reactions_forgotten_total", "Dead letters dropped because there were too many.";
    REACTIONS_OVERDUE = "brine_reactions_overdue_total", "Events whose reactions were cancelled at `reactor_deadline`.";
    REACTOR_WRITES_FAILED = "brine_reactor_writes_failed_total", "Writes of the reactor that the store refused; each is retried.";
    RULE_KEYS_FORGOTTEN = "brine_reactor_rule_keys_forgotten_total", "Keys of rules over time dropped because there were too many.";
    REACTION_LOOPS = "brine_reaction_loops_total", "Events without reaction because their chain of reactions had reached `reactor_max_depth`.";
    REACTOR_ERRORS = "brine_reactor_errors_total", "Reactor SLS files that could not be read, rendered or compiled.";
}

/// Reactions by entry and outcome.
pub static REACTIONS_BY_ENTRY: Family = Family::new(
    "brine_reactor_reactions_total",
    "Reactions by entry and outcome: done, no_minion (no minion matched the target), failed, unreadable.",
    &["entry", "outcome"],
);
/// The lag of durable subscribers.
pub static SUBSCRIBER_LAG: Family = Family::new(
    "brine_subscriber_lag_events",
    "Events that a durable subscriber has not handled yet.",
    &["subscriber"],
);
/// The length of the reactor's queue.
pub static QUEUE_DEPTH: Gauge =
    Gauge::new("brine_reactor_queue_depth", "Events queued for, or handled by, a reactor worker.");
/// Threads of slow reactions.
pub static REACTOR_DETACHED: Gauge = Gauge::new(
    "brine_reactor_detached_threads",
    "Threads with reactions of more than 10 s, which no longer count as workers; at most 64.",
);
/// Whether the reactor is paused.
pub static REACTOR_PAUSED: Gauge = Gauge::new(
    "brine_reactor_paused",
    "1 while the reactor takes no events because too many reactions are unfinished, else 0.",
);
/// The durations of renders of reactor SLS files.
pub static RENDER_SECONDS: Histogram =
    Histogram::new("brine_reactor_render_seconds", "Time to render a reactor SLS file.");
/// The durations from taking an event to having dispatched its reactions.
pub static REACTION_SECONDS: Histogram =
    Histogram::new("brine_reactor_reaction_seconds", "Time from taking an event to having dispatched its reactions.");

/// Work items of the executors by outcome.
pub static EXECUTOR_WORK: Family = Family::new(
    "brine_executor_work_total",
    "Work items of the executors by outcome: done, panicked, refused.",
    &["executor", "outcome"],
);
/// The time that work items waited for a thread.
pub static EXECUTOR_WAIT: Family = Family::new(
    "brine_executor_wait_microseconds_total",
    "Microseconds that work items waited for a thread of their executor.",
    &["executor"],
);

/// The size of the journal.
pub static JOURNAL_BYTES: Gauge = Gauge::new("brine_journal_bytes", "Bytes of the events in the journal.");
/// The number of events in the journal.
pub static JOURNAL_EVENTS: Gauge = Gauge::new("brine_journal_events", "Events in the journal.");
/// Whether the store has failed.
pub static STORE_FAILED: Gauge =
    Gauge::new("brine_store_failed", "1 while the store refuses writes because of a disk failure, else 0.");
/// The size of the store.
pub static STORE_BYTES: Gauge = Gauge::new("brine_store_bytes", "Bytes of the store on disk.");
/// The number of subscribers of the event socket.
pub static SUBSCRIBERS: Gauge =
    Gauge::new("brine_event_subscribers", "Programs subscribed to the event bus through its socket.");

/// The number of network connections.
pub static CONNECTIONS: Gauge = Gauge::new("brine_connections", "Open connections of the network ports.");

/// All families with their Prometheus types.
pub static FAMILIES: &[(&Family, &str)] = &[
    (&REACTIONS_BY_ENTRY, "counter"),
    (&SUBSCRIBER_LAG, "gauge"),
    (&EXECUTOR_WORK, "counter"),
    (&EXECUTOR_WAIT, "counter"),
];
/// All gauges.
pub static GAUGES: &[&Gauge] = &[
    &QUEUE_DEPTH,
    &REACTOR_DETACHED,
    &REACTOR_PAUSED,
    &JOURNAL_BYTES,
    &JOURNAL_EVENTS,
    &STORE_FAILED,
    &STORE_BYTES,
    &SUBSCRIBERS,
    &CONNECTIONS,
];
/// All histograms.
pub static HISTOGRAMS: &[&Histogram] = &[&RENDER_SECONDS, &REACTION_SECONDS];

/// A sample: `name{label="value"}` and its number.
type Sample = (String, String);

/// Returns all metrics: name, help, Prometheus type and samples.
fn all() -> Vec<(&'static str, &'static str, &'static str, Vec<Sample>)> {
    let plain = |name: &str, value: String| vec![(name.to_owned(), value)];
    let mut all: Vec<_> =
        ALL.iter().map(|one| (one.name, one.help, "counter", plain(one.name, one.get().to_string()))).collect();
    all.extend(GAUGES.iter().map(|one| (one.name, one.help, "gauge", plain(one.name, one.get().to_string()))));
    for (family, kind) in FAMILIES {
        let sample = |(values, number): (Vec<String>, u64)| {
            let labels =
                family.labels.iter().zip(&values).map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
            (format!("{}{{{}}}", family.name, labels.collect::<Vec<_>>().join(",")), number.to_string())
        };
        all.push((family.name, family.help, kind, family.all().into_iter().map(sample).collect()));
    }
    for one in HISTOGRAMS {
        let mut below = 0;
        let mut samples = Vec::new();
        for (bound, bucket) in BUCKETS.iter().zip(&one.buckets) {
            below += bucket.load(Ordering::Relaxed);
            samples.push((format!("{}_bucket{{le=\"{bound}\"}}", one.name), below.to_string()));
        }
        let (count, sum) = one.sum();
        samples.push((format!("{}_bucket{{le=\"+Inf\"}}", one.name), count.to_string()));
        samples.push((format!("{}_sum", one.name), sum.to_string()));
        samples.push((format!("{}_count", one.name), count.to_string()));
        all.push((one.name, one.help, "histogram", samples));
    }
    all
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Returns all samples except the buckets of histograms.
pub fn pairs() -> Vec<(String, String)> {
    let samples = all().into_iter().flat_map(|(.., samples)| samples);
    samples.filter(|(name, _)| !name.contains("_bucket{le=")).collect()
}

/// Returns all metrics in Prometheus' text format.
pub fn prometheus() -> String {
    let mut out = String::new();
    for (name, help, kind, samples) in all() {
        // Writing into a `String` cannot fail.
        _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (name, number) in samples {
            _ = writeln!(out, "{name} {number}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_prometheus_text_format() {
        REPLIES_LOST.add(2);
        let text = prometheus();
        assert!(text.contains("# TYPE brine_replies_lost_total counter\nbrine_replies_lost_total "), "{text}");
        REACTIONS_BY_ENTRY.with(&["salt/\"auth\"", "done"]).add(3);
        RENDER_SECONDS.observe(0.002);
        let text = prometheus();
        for line in [
            "brine_reactor_reactions_total{entry=\"salt/\\\"auth\\\"\",outcome=\"done\"} 3\n",
            "# TYPE brine_subscriber_lag_events gauge\n",
            "brine_reactor_render_seconds_bucket{le=\"0.001\"} 0\n",
            "brine_reactor_render_seconds_bucket{le=\"0.005\"} 1\n",
            "brine_reactor_render_seconds_count 1\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn the_number_of_label_sets_is_bounded() {
        let family = Family::new("x", "x", &["n"]);
        for n in 0..LABELS + 10 {
            family.with(&[&n.to_string()]).add(1);
        }
        let all = family.all();
        assert_eq!(all.len(), LABELS + 1);
        assert!(all.contains(&(vec!["(other)".to_owned()], 10)));
    }
}
