//! The durations of requests by command, published as `salt/stats/<worker>` with `master_stats: True`.
//!
//! Salt publishes them for each worker process. Here requests share threads, so there is one worker.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use brine_value::{Map, Value, map};
use parking_lot::Mutex;

/// The name of the only worker: that of Salt's first one.
const WORKER: &str = "MWorker-default-0";

/// The requests since the last event.
#[derive(Debug)]
pub(crate) struct Stats(Mutex<Since>);

#[derive(Debug)]
struct Since {
    start: Instant,
    /// The number of requests, and their total duration.
    by_command: BTreeMap<String, (u64, Duration)>,
}

impl Default for Stats {
    fn default() -> Self {
        Stats(Mutex::new(Since { start: Instant::now(), by_command: BTreeMap::new() }))
    }
}

impl Stats {
    /// Counts a request. Returns the tag and body of an event when one is due.
    pub fn take(&self, command: &str, took: Duration, every: Duration) -> Option<(String, Map)> {
        let mut since = self.0.lock();
        let (runs, all) = since.by_command.entry(command.to_owned()).or_default();
        *runs += 1;
        *all += took;
        if since.start.elapsed() < every {
            return None;
        }
        let empty = Since { start: Instant::now(), by_command: BTreeMap::new() };
        let Since { start, by_command } = std::mem::replace(&mut *since, empty);
        let mean = |runs: u64, all: Duration| all.as_secs_f64() / runs as f64;
        let stats: Map = by_command
            .into_iter()
            .map(|(command, (runs, all))| (command.into(), map! {"mean" => mean(runs, all), "runs" => runs}.into()))
            .collect();
        let body = map! {
            "time" => start.elapsed().as_secs_f64(),
            "worker" => WORKER,
            "pool" => "default",
            "pool_index" => 0,
            "stats" => Value::Map(stats),
        };
        Some((format!("salt/stats/{WORKER}"), body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_runs_and_means_since_the_last_one() {
        let stats = Stats::default();
        let long = Duration::from_secs(60);
        assert_eq!(stats.take("_auth", Duration::from_secs(1), long), None);
        let (tag, body) = stats.take("_auth", Duration::from_secs(3), Duration::ZERO).unwrap();
        assert_eq!(tag, "salt/stats/MWorker-default-0");
        assert_eq!(body.get("stats"), Some(&map! {"_auth" => map! {"mean" => 2.0, "runs" => 2}}.into()));
        let (_, body) = stats.take("_return", Duration::from_secs(3), Duration::ZERO).unwrap();
        assert_eq!(body.get("stats").and_then(|stats| stats.get("_auth")), None);
    }
}
