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
        let known = self.masters.iter().find(|position| position.master == *master);
        let (last, away) = match (known, self.left) {
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
mod tests {
    use super::*;

    fn master(name: &str) -> Address {
        Address { host: name.to_owned(), port: 4506 }
    }

    /// Simulates a sequence of events, one a second: `A` joins the master A, `a` is a job of it, `-` is the end of the
    /// session, `.` a second without events. Returns the request to a master thereafter, as last job and seconds.
    fn play(earlier: Option<&str>, story: &str, to: &str, are_several: bool) -> String {
        let mut received = Received::after(earlier.map(str::to_owned));
        let mut now = Instant::now();
        for (number, step) in story.chars().enumerate() {
            match step {
                '-' => received.left(now),
                '.' => {}
                step if step.is_uppercase() => received.joined(&master(&step.to_string()), now),
                step => received.job(&master(&step.to_uppercase().to_string()), &format!("{step}{number}")),
            }
            now += Duration::from_secs(1);
        }
        let options =
            CatchUpOptions { max_age: Duration::from_secs(60), detection_time: Duration::from_secs(4), are_several };
        let Some(load) = received.request(&master(to), options, now) else { return "none".into() };
        let away = load.get("away").map(ToString::to_string).unwrap_or_default();
        format!("{} {away}", load["jid"])
    }

    #[test]
    fn catch_up_begins_where_the_session_ended() {
        for (earlier, story, to, expected) in [
            // A start.
            (None, "", "A", "none"),
            (Some("old"), "", "A", "old 61"),
            // A failed connection does not count as a session: this is still a start.
            (None, "-", "A", "none"),
            // Back at the same master, with and without a job of it.
            (Some("old"), "Aa-..", "A", "a1 "),
            (Some("old"), "A-..", "A", " 5"),
            // At another master, the request contains the time without a session.
            (None, "Aa-..", "B", "a1 8"),
            (Some("old"), "A-..", "B", "old 61"),
            (None, "A-..", "B", " 8"),
            // A failed attempt in between is not a session.
            (None, "Aa--.", "B", "a1 8"),
            // Back at the first one: from its own last job, not from that of the other.
            (None, "Aa-B.b.b-", "A", "a1 "),
            (None, "A-B.b.b-.", "A", " 10"),
        ] {
            assert_eq!(play(earlier, story, to, true), expected, "{story} {to}");
        }
        assert_eq!(play(Some("old"), "", "A", false), "old ");
    }
}
