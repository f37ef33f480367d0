//! The jobs received from each master: the starting points of requests for missed jobs.
//!
//! A job id is a timestamp of the master that has published the job, so the last job of one master is no reliable
//! starting point at another. A request to another master therefore also contains a period (`away`) in which jobs may
//! have been missed.

use std::time::{Duration, Instant};

use brine_value::{Map, map};

use crate::masters::Address;

/// The masters that the minion has had a session with, and the last job of each.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// The last job of an earlier run, of any master.
    earlier: Option<String>,
    /// The last job of this run, of any master.
    last: Option<String>,
    masters: Vec<Position>,
    /// Whether there is a session.
    is_joined: bool,
    /// The end of the last session with any master.
    left: Option<Instant>,
}

#[derive(Debug)]
struct Position {
    master: Address,
    /// The beginning of the first session of this run.
    joined: Instant,
    /// The last job of this run.
    last: Option<String>,
}

/// The options for requests of missed jobs.
#[derive(Debug, Clone, Copy)]
pub(super) struct CatchUpOptions {
    /// The age up to which jobs are fetched (`publish_catch_up`).
    pub max_age: Duration,
    /// The longest time until the loss of a master is detected (`master_alive_interval`).
    pub detection_time: Duration,
    /// Whether the minion has several masters.
    pub are_several: bool,
}

impl Received {
    /// Creates the record of a new run; `earlier` is the last job of the previous one.
    pub fn after(earlier: Option<String>) -> Self {
        Received { earlier, ..Received::default() }
    }

    /// Records a job of this master.
    pub fn job(&mut self, master: &Address, jid: &str) {
        self.last = Some(jid.to_owned());
        if let Some(position) = self.masters.iter_mut().find(|position| position.master == *master) {
            position.last = Some(jid.to_owned());
        }
    }

    /// Records a session with this master.
    pub fn joined(&mut self, master: &Address, now: Instant) {
        self.is_joined = true;
        if !self.masters.iter().any(|position| position.master == *master) {
            self.masters.push(Position { master: master.clone(), joined: now, last: None });
        }
    }

    /// Records the end of the session, if there is one.
    pub fn left(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_joined) {
            self.left = Some(now);
        }
    }

    /// Returns the request for the jobs that the minion may have missed at this master; `None` for a minion that starts
    /// and has never received a job.
    pub fn request(&self, master: &Address, options: CatchUpOptions, now: Instant) -> Option<Map> {
        let since = |then: Instant| now.saturating_duration_since(then);
        let position = self.masters.iter().find(|position| position.master == *master);
        let (last, away) = match (position, self.left) {
            // The master knows the order of its own jobs.
            (Some(Position { last: Some(last), .. }), _) => (Some(last), None),
            (Some(position), _) => (None, Some(since(position.joined))),
            // The minion comes from another master. In an earlier run it may have used this one.
            (None, Some(left)) => {
                let away = if self.earlier.is_some() { options.max_age } else { since(left) + options.detection_time };
                (self.last.as_ref().or(self.earlier.as_ref()), Some(away))
            }
            // The last job of an earlier run may be of any of the masters.
            (None, None) => (Some(self.earlier.as_ref()?), options.are_several.then_some(options.max_age)),
        };
        let mut load = map! {"cmd" => "_catch_up", "jid" => last.cloned().unwrap_or_default()};
        // Rounded up.
        load.extend(away.map(|away| ("away".into(), (away.as_secs() + 1).into())));
        Some(load)
    }
}

#[cfg(test)]
mod tests;
