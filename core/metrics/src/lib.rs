//! Counters: what is worth counting, in one place. Nothing is lost without one of these going up.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::RwLock;

/// How many sets of labels a family keeps apart; further ones share `(other)`.
const LABELS: usize = 10_000;

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

/// A number that rises and falls.
#[derive(Debug)]
pub struct Gauge {
    /// Its name, as Prometheus wants it.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    value: AtomicI64,
}

impl Gauge {
    const fn new(name: &'static str, help: &'static str) -> Self {
        Gauge { name, help, value: AtomicI64::new(0) }
    }

    /// Sets it.
    pub fn set(&self, value: u64) {
        self.value.store(i64::try_from(value).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Raises it.
    pub fn add(&self, by: u64) {
        self.value.fetch_add(i64::try_from(by).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Lowers it.
    pub fn sub(&self, by: u64) {
        self.value.fetch_sub(i64::try_from(by).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// What it is now.
    pub fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }
}

/// Counters that are kept apart by labels.
#[derive(Debug)]
pub struct Family {
    /// Its name, as Prometheus wants it.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    children: RwLock<BTreeMap<Vec<String>, Arc<Child>>>,
}

/// One counter of a family.
#[derive(Debug, Default)]
pub struct Child(AtomicU64);

impl Child {
    /// Counts.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Sets it, for families that say how something is now.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// What it is now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Family {
    const fn new(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Self {
        Family { name, help, labels, children: RwLock::new(BTreeMap::new()) }
    }

    /// The counter with these values of the labels.
    pub fn with(&self, values: &[&str]) -> Arc<Child> {
        let key: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        if let Some(child) = self.children.read().get(&key) {
            return Arc::clone(child);
        }
        let mut children = self.children.write();
        let key = if children.len() < LABELS { key } else { vec!["(other)".to_owned(); key.len()] };
        Arc::clone(children.entry(key).or_default())
    }

    /// All counters with the values of their labels.
    pub fn all(&self) -> Vec<(Vec<String>, u64)> {
        self.children.read().iter().map(|(values, child)| (values.clone(), child.get())).collect()
    }
}

/// Upper bounds of the buckets of a histogram, in seconds.
const BUCKETS: [f64; 12] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

/// How long something takes.
#[derive(Debug)]
pub struct Histogram {
    /// Its name, as Prometheus wants it.
    pub name: &'static str,
    /// What it measures.
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

    /// Takes a length of time in seconds.
    pub fn observe(&self, seconds: f64) {
        if let Some(bucket) = BUCKETS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add((seconds.max(0.0) * 1e6) as u64, Ordering::Relaxed);
    }

    /// How many, and their sum in seconds.
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
    ACCEPT_FAILED = "brine_accept_failed_total", "Connections that could not be taken.";
    CONNECTIONS_REFUSED = "brine_connections_refused_total", "Connections that were closed because of what they sent.";
    CONNECTIONS_LIMITED = "brine_connections_limited_total", "Connections that were closed at once because there were too many.";
    CONNECTIONS_EVICTED = "brine_connections_evicted_total", "Connections of unauthenticated peers that gave way to new ones because there were too many.";
    MESSAGES_DROPPED = "brine_messages_dropped_total", "Messages that were not kept because unauthenticated peers may not send or hold so much.";
    SUBSCRIBERS_DROPPED = "brine_subscribers_dropped_total", "Subscribers of the publish port that were disconnected because they were too far behind.";
    TASKS_PANICKED = "brine_tasks_panicked_total", "Connections and requests that ended by a panic.";
    REQUESTS = "brine_requests_total", "Requests taken.";
    REQUESTS_REFUSED = "brine_requests_refused_total", "Requests refused: malformed, unknown, or not allowed.";
    REPLIES_LOST = "brine_replies_lost_total", "Replies whose receiver went away.";
    PUBLISHES = "brine_publishes_total", "Jobs published.";
    PUBLISHES_LOST = "brine_publishes_lost_total", "Publishes that a too slow subscriber missed.";
    AUTHENTICATIONS = "brine_authentications_total", "Authentications that were accepted.";
    AUTHENTICATIONS_REFUSED = "brine_authentications_refused_total", "Authentications that were pending, rejected, denied or malformed.";
    EVENTS = "brine_events_total", "Events that went over the bus.";
    EVENT_BYTES = "brine_event_bytes_total", "Bytes of events that went over the bus.";
    EVENTS_REFUSED = "brine_events_refused_total", "Events that were refused: malformed or too large.";
    EVENTS_MISSED = "brine_events_missed_total", "Events that a subscriber missed because there is no journal or they had left it.";
    JOURNAL_FAILED = "brine_journal_failed_total", "Events that could not be written to the journal.";
    TASKS_FAILED = "brine_tasks_failed_total", "Tasks of a daemon that panicked or ended by themselves.";
    PUBLISHES_CAUGHT_UP = "brine_publishes_caught_up_total", "Jobs handed to minions that were not connected when they were published.";
    PUBLISHES_MISSED = "brine_publishes_missed_total", "Jobs that a minion was too late for, or that exceeded the answer.";
    JOURNAL_RESTARTS = "brine_journal_restarts_total", "Restarts of the journal writer after a panic.";
    STORE_FAILURES = "brine_store_failures_total", "Failures of the store: the disk was full, read-only or broken.";
    STORE_REFUSED = "brine_store_refused_total", "Writes that the store refused because it had failed or its queue was full.";
    STORE_DAMAGED = "brine_store_damaged_total", "Reads and writes that met a damaged page or row of the store.";
    STORE_REPLACED = "brine_store_replaced_total", "Stores that were damaged beyond repair while the master ran: moved aside, with an empty one in their place.";
    RETURNS = "brine_returns_total", "Job returns taken.";
    RETURNS_TRIMMED = "brine_returns_trimmed_total", "Returns that exceeded max_event_size, whose events were trimmed.";
    RETURNS_LOST = "brine_returns_lost_total", "Job returns that a returner could not keep, or that a minion dropped before its master accepted them.";
    RETURNS_RETRIED = "brine_returns_retried_total", "Job returns of a minion that were kept because its master did not accept them.";
    OUTPUT_CUT = "brine_command_output_cut_total", "Outputs of commands that were cut at cmd_output_limit.";
    MINION_EVENTS_LOST = "brine_minion_events_lost_total", "Events of a minion that its master did not accept in time.";
    JOBS_INTERRUPTED = "brine_jobs_interrupted_total", "Jobs that a minion was running when it was killed.";
    JOBS_REFUSED = "brine_jobs_refused_total", "Jobs that a minion refused because too many were waiting.";
    REACTIONS = "brine_reactions_total", "Reactions handed over.";
    TEMPLATE_LIMITS_EXCEEDED = "brine_template_limits_exceeded_total", "Renders that ended at a limit of templates.";
    REACTIONS_FAILED = "brine_reactions_failed_total", "Reactions that failed.";
    REACTIONS_RETRIED = "brine_reactions_retried_total", "Reactions tried again because their failure could pass.";
    REACTIONS_LIMITED = "brine_reactions_limited_total", "Reactions left out by reactor_rate_limit, reactor_cooldown and reactor_debounce.";
    REACTIONS_KNOWN = "brine_reactions_known_total", "Reactions that had been done before a restart and were not done again.";
    REACTIONS_FORGOTTEN = "brine_reactions_forgotten_total", "Failed reactions that left because too many were put aside.";
    REACTIONS_OVERDUE = "brine_reactions_overdue_total", "Events whose reactions were cancelled because they exceeded reactor_deadline.";
    REACTOR_WRITES_FAILED = "brine_reactor_writes_failed_total", "Writes of the reactor that the store refused; each is tried again.";
    RULE_KEYS_FORGOTTEN = "brine_reactor_rule_keys_forgotten_total", "Keys of rules over time that left because there were too many.";
    REACTION_LOOPS = "brine_reaction_loops_total", "Events that were not reacted to because too many reactions led to them.";
    REACTOR_ERRORS = "brine_reactor_errors_total", "Reactor SLS files that could not be read, rendered or compiled.";
}

/// Reactions by the entry that led to them and what came of them.
pub static REACTIONS_BY_ENTRY: Family = Family::new(
    "brine_reactor_reactions_total",
    "Reactions by entry and outcome: done, no_minion (published to nobody), failed, unreadable.",
    &["entry", "outcome"],
);
/// How far durable subscribers are behind the newest event.
pub static SUBSCRIBER_LAG: Family = Family::new(
    "brine_subscriber_lag_events",
    "Events that a durable subscriber has not handled yet.",
    &["subscriber"],
);
/// Events that wait in memory for a worker of the reactor.
pub static QUEUE_DEPTH: Gauge =
    Gauge::new("brine_reactor_queue_depth", "Events that wait for, or are with, a worker of the reactor.");
/// Threads of reactions that take long.
pub static REACTOR_DETACHED: Gauge =
    Gauge::new("brine_reactor_detached_threads", "Threads of slow reactions that count as workers no more.");
/// Whether the reactor takes no events because too much is open.
pub static REACTOR_PAUSED: Gauge =
    Gauge::new("brine_reactor_paused", "1 while the reactor takes no events because too many reactions are open.");
/// How long it takes to render a reactor SLS.
pub static RENDER_SECONDS: Histogram =
    Histogram::new("brine_reactor_render_seconds", "Seconds to render a reactor SLS.");
/// How long it takes from taking an event to the end of its reactions.
pub static REACTION_SECONDS: Histogram = Histogram::new(
    "brine_reactor_reaction_seconds",
    "Seconds from taking an event to having handed over its reactions.",
);

/// Work of the named executors by outcome.
pub static EXECUTOR_WORK: Family = Family::new(
    "brine_executor_work_total",
    "Work of the executors by outcome: done, panicked, refused.",
    &["executor", "outcome"],
);
/// The time that work waited for a thread of its executor.
pub static EXECUTOR_WAIT: Family = Family::new(
    "brine_executor_wait_microseconds_total",
    "Microseconds that work waited for a thread of its executor.",
    &["executor"],
);

/// How large the journal is.
pub static JOURNAL_BYTES: Gauge = Gauge::new("brine_journal_bytes", "Bytes of events in the journal.");
/// How many events the journal has.
pub static JOURNAL_EVENTS: Gauge = Gauge::new("brine_journal_events", "Events in the journal.");
/// Whether the store refuses writes.
pub static STORE_FAILED: Gauge =
    Gauge::new("brine_store_failed", "1 while the store refuses writes because the disk takes none, else 0.");
/// How large the store is.
pub static STORE_BYTES: Gauge = Gauge::new("brine_store_bytes", "Bytes that the store takes on its disk.");
/// How many programs follow the event bus through its socket.
pub static SUBSCRIBERS: Gauge =
    Gauge::new("brine_event_subscribers", "Programs that follow the event bus through its socket.");

/// How many connections there are on the network ports.
pub static CONNECTIONS: Gauge = Gauge::new("brine_connections", "Open connections of the network ports.");

/// All families: those that count, and those that say how something is now.
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

/// One number with its name: `name{label="value"}`.
type Sample = (String, String);

/// All metrics: name, help, kind, and the samples.
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

/// All metrics as pairs of name and number, without the buckets of histograms.
pub fn pairs() -> Vec<(String, String)> {
    let samples = all().into_iter().flat_map(|(.., samples)| samples);
    samples.filter(|(name, _)| !name.contains("_bucket{le=")).collect()
}

/// All metrics as Prometheus text.
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
    fn counters_are_shown_as_prometheus_wants_them() {
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
    fn a_family_does_not_grow_without_end() {
        let family = Family::new("x", "x", &["n"]);
        for n in 0..LABELS + 10 {
            family.with(&[&n.to_string()]).add(1);
        }
        let all = family.all();
        assert_eq!(all.len(), LABELS + 1);
        assert!(all.contains(&(vec!["(other)".to_owned()], 10)));
    }
}
