//! How long requests take, by command, told as `salt/stats/<worker>` with `master_stats: True`.
//!
//! Salt tells it of each worker process. Here requests share threads, so there is one worker.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use brine_value::{Map, Value, map};
use parking_lot::Mutex;

use crate::Shared;

/// The one worker that there is, named as the first of Salt's.
const WORKER: &str = "MWorker-default-0";

/// What was asked since the last event.
#[derive(Debug)]
pub(crate) struct Stats(Mutex<Since>);

#[derive(Debug)]
struct Since {
    start: Instant,
    /// How often, and how long in all.
    by_command: BTreeMap<String, (u64, Duration)>,
}

impl Default for Stats {
    fn default() -> Self {
        Stats(Mutex::new(Since { start: Instant::now(), by_command: BTreeMap::new() }))
    }
}

impl Stats {
    /// Takes note of a request; gives the body of an event when one is due.
    fn take(&self, command: &str, took: Duration, every: Duration) -> Option<Map> {
        let mut since = self.0.lock();
        let (runs, all) = since.by_command.entry(command.to_owned()).or_default();
        *runs += 1;
        *all += took;
        if since.start.elapsed() < every {
            return None;
        }
        let told = Since { start: Instant::now(), by_command: BTreeMap::new() };
        let Since { start, by_command } = std::mem::replace(&mut *since, told);
        let mean = |runs: u64, all: Duration| all.as_secs_f64() / runs as f64;
        let stats: Map = by_command
            .into_iter()
            .map(|(command, (runs, all))| (command.into(), map! {"mean" => mean(runs, all), "runs" => runs}.into()))
            .collect();
        Some(map! {
            "time" => start.elapsed().as_secs_f64(),
            "worker" => WORKER,
            "pool" => "default",
            "pool_index" => 0,
            "stats" => Value::Map(stats),
        })
    }
}

impl Shared {
    /// Takes note of a request that was answered, if that is asked for.
    pub(crate) async fn count_request(&self, command: &str, start: Instant) {
        if !self.config.master_stats {
            return;
        }
        let every = Duration::from_secs(self.config.master_stats_event_iter);
        if let Some(body) = self.stats.take(command, start.elapsed(), every) {
            self.fire(&format!("salt/stats/{WORKER}"), &body).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_means_are_told_and_begin_anew() {
        let stats = Stats::default();
        let long = Duration::from_secs(60);
        assert_eq!(stats.take("_auth", Duration::from_secs(1), long), None);
        let told = stats.take("_auth", Duration::from_secs(3), Duration::ZERO).unwrap();
        assert_eq!(told.get("stats"), Some(&map! {"_auth" => map! {"mean" => 2.0, "runs" => 2}}.into()));
        let told = stats.take("_return", Duration::from_secs(3), Duration::ZERO).unwrap();
        assert_eq!(told.get("stats").and_then(|stats| stats.get("_auth")), None);
    }
}
