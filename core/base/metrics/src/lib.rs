//! Metric types, and the registry of the metrics that a process exports.
//!
//! Each crate declares its metrics with [`metrics!`] in its own module `metrics`. A daemon registers the metrics of its
//! crates when it starts ([`register`]); [`prometheus`] and [`pairs`] export the registered metrics.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::RwLock;

/// The maximum number of label sets of a family; further ones are counted together as `(other)`.
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
    /// Creates a counter; used by [`metrics!`] for statics.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
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
    /// Creates a gauge; used by [`metrics!`] for statics.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
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
    /// Whether the family is of counters instead of gauges.
    pub is_monotonic: bool,
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
    /// Creates a family; used by [`metrics!`] for statics.
    pub const fn new(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        is_monotonic: bool,
    ) -> Self {
        Family { name, help, labels, is_monotonic, children: RwLock::new(BTreeMap::new()) }
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
    /// Creates a histogram; used by [`metrics!`] for statics.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        let buckets = [const { AtomicU64::new(0) }; BUCKETS.len()];
        Histogram { name, help, buckets, count: AtomicU64::new(0), micros: AtomicU64::new(0) }
    }

    /// Records a duration in seconds.
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

/// A metric of any type.
#[derive(Debug, Clone, Copy)]
pub enum Metric {
    /// A number that only increases.
    Counter(&'static Counter),
    /// A number that increases and decreases.
    Gauge(&'static Gauge),
    /// Numbers by label values.
    Family(&'static Family),
    /// A distribution of durations.
    Histogram(&'static Histogram),
}

/// A sample: `name{label="value"}` and its value.
type Sample = (String, String);

impl Metric {
    /// Returns its Prometheus name.
    pub fn name(&self) -> &'static str {
        match self {
            Metric::Counter(one) => one.name,
            Metric::Gauge(one) => one.name,
            Metric::Family(one) => one.name,
            Metric::Histogram(one) => one.name,
        }
    }

    /// Returns its help text.
    pub fn help(&self) -> &'static str {
        match self {
            Metric::Counter(one) => one.help,
            Metric::Gauge(one) => one.help,
            Metric::Family(one) => one.help,
            Metric::Histogram(one) => one.help,
        }
    }

    /// Returns the names of its labels.
    pub fn labels(&self) -> &'static [&'static str] {
        match self {
            Metric::Family(one) => one.labels,
            _ => &[],
        }
    }

    /// Returns its Prometheus type: `counter`, `gauge` or `histogram`.
    pub fn kind(&self) -> &'static str {
        match self {
            Metric::Counter(_) | Metric::Family(Family { is_monotonic: true, .. }) => "counter",
            Metric::Gauge(_) | Metric::Family(_) => "gauge",
            Metric::Histogram(_) => "histogram",
        }
    }

    fn samples(&self) -> Vec<Sample> {
        match self {
            Metric::Counter(one) => vec![(one.name.to_owned(), one.get().to_string())],
            Metric::Gauge(one) => vec![(one.name.to_owned(), one.get().to_string())],
            Metric::Family(one) => one.samples(),
            Metric::Histogram(one) => one.samples(),
        }
    }
}

impl Family {
    fn samples(&self) -> Vec<Sample> {
        let sample = |(values, number): (Vec<String>, u64)| {
            let labels =
                self.labels.iter().zip(&values).map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
            (format!("{}{{{}}}", self.name, labels.collect::<Vec<_>>().join(",")), number.to_string())
        };
        self.all().into_iter().map(sample).collect()
    }
}

impl Histogram {
    fn samples(&self) -> Vec<Sample> {
        let mut below = 0;
        let mut samples = Vec::new();
        for (bound, bucket) in BUCKETS.iter().zip(&self.buckets) {
            below += bucket.load(Ordering::Relaxed);
            samples.push((format!("{}_bucket{{le=\"{bound}\"}}", self.name), below.to_string()));
        }
        let (count, sum) = self.sum();
        samples.push((format!("{}_bucket{{le=\"+Inf\"}}", self.name), count.to_string()));
        samples.push((format!("{}_sum", self.name), sum.to_string()));
        samples.push((format!("{}_count", self.name), count.to_string()));
        samples
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Declares the metrics of a crate as statics, and `METRICS`, the list of all of them.
///
/// ```
/// brine_metrics::metrics! {
///     counter REQUESTS = "brine_requests_total", "Requests taken.";
///     gauge CONNECTIONS = "brine_connections", "Open connections.";
///     counter REACTIONS["entry", "outcome"] = "brine_reactions_total", "Reactions by entry and outcome.";
///     histogram RENDER_SECONDS = "brine_render_seconds", "Seconds to render a template.";
/// }
///
/// REQUESTS.add(1);
/// REACTIONS.with(&["salt/auth", "done"]).add(1);
/// assert_eq!(METRICS.len(), 4);
/// ```
#[macro_export]
macro_rules! metrics {
    (@declare counter $metric:ident, $name:literal, $help:literal) => {
        #[doc = $help]
        pub static $metric: $crate::Counter = $crate::Counter::new($name, $help);
    };
    (@declare gauge $metric:ident, $name:literal, $help:literal) => {
        #[doc = $help]
        pub static $metric: $crate::Gauge = $crate::Gauge::new($name, $help);
    };
    (@declare histogram $metric:ident, $name:literal, $help:literal) => {
        #[doc = $help]
        pub static $metric: $crate::Histogram = $crate::Histogram::new($name, $help);
    };
    (@declare counter $metric:ident, $name:literal, $help:literal, $($label:literal)+) => {
        #[doc = $help]
        pub static $metric: $crate::Family = $crate::Family::new($name, $help, &[$($label),+], true);
    };
    (@declare gauge $metric:ident, $name:literal, $help:literal, $($label:literal)+) => {
        #[doc = $help]
        pub static $metric: $crate::Family = $crate::Family::new($name, $help, &[$($label),+], false);
    };
    (@entry counter $metric:ident) => { $crate::Metric::Counter(&$metric) };
    (@entry gauge $metric:ident) => { $crate::Metric::Gauge(&$metric) };
    (@entry histogram $metric:ident) => { $crate::Metric::Histogram(&$metric) };
    (@entry $kind:ident $metric:ident, $($label:literal)+) => { $crate::Metric::Family(&$metric) };
    ($($kind:ident $metric:ident $([$($label:literal),+])? = $name:literal, $help:literal;)*) => {
        $($crate::metrics!(@declare $kind $metric, $name, $help $(, $($label)+)?);)*

        /// All metrics of this crate.
        pub static METRICS: &[$crate::Metric] = &[$($crate::metrics!(@entry $kind $metric $(, $($label)+)?)),*];
    };
}

/// The exported metrics of this process, by name.
static REGISTRY: RwLock<BTreeMap<&'static str, Metric>> = RwLock::new(BTreeMap::new());

/// Registers metrics for export. Metrics that are registered already are left unchanged.
pub fn register(crates: &[&'static [Metric]]) {
    let mut registry = REGISTRY.write();
    for metric in crates.iter().copied().flatten() {
        registry.entry(metric.name()).or_insert(*metric);
    }
}

/// Returns the registered metrics, sorted by name.
pub fn registered() -> Vec<Metric> {
    REGISTRY.read().values().copied().collect()
}

/// Returns the registered metrics as pairs of name and value, without the buckets of histograms.
pub fn pairs() -> Vec<(String, String)> {
    let samples = registered().into_iter().flat_map(|metric| metric.samples());
    samples.filter(|(name, _)| !name.contains("_bucket{le=")).collect()
}

/// Returns the registered metrics in Prometheus' text format.
pub fn prometheus() -> String {
    let mut out = String::new();
    for metric in registered() {
        let (name, help, kind) = (metric.name(), metric.help(), metric.kind());
        // Writing into a `String` cannot fail.
        _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (name, number) in metric.samples() {
            _ = writeln!(out, "{name} {number}");
        }
    }
    out
}

#[cfg(test)]
mod tests;
