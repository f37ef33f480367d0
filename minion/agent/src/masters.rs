//! Selects one of several masters (`master_type: failover`): a state machine without connections and clocks.
//!
//! The masters form a ring. If the current one cannot be reached, does not accept the minion or is lost, the next one
//! becomes current. After a whole round without success the minion pauses before it continues. It never gives up.

use std::fmt;
use std::num::NonZeroUsize;

use brine_config::MinionConfig;

/// The address of a master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The host name or IP address.
    pub host: String,
    /// The port for requests.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The next step after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The current master is tried at once.
    Try,
    /// All masters have failed since the last success: the minion pauses, then tries the current one.
    Pause,
}

/// The masters of a minion.
#[derive(Debug, Clone)]
pub struct Masters {
    all: Vec<Address>,
    current: usize,
    /// The number of failures since the last success.
    failures: usize,
}

impl Masters {
    /// Reads the masters of the minion `id`; `None` if there are none. `shuffle` puts masters in a random order.
    pub fn read(config: &MinionConfig, id: &str, shuffle: impl FnOnce(&mut [Address])) -> Option<Self> {
        let mut all: Vec<_> = config.masters().into_iter().map(|(host, port)| Address { host, port }).collect();
        if config.master_type == "distributed" && !all.is_empty() {
            // As in Salt, the same master for each start.
            let preferred = crc32fast::hash(id.as_bytes()) as usize % all.len();
            let preferred = all.remove(preferred);
            all.insert(0, preferred);
        }
        if config.random_master || config.master_shuffle {
            // The first master stays the one to return to.
            let shuffled = if config.master_failback { all.get_mut(1..) } else { all.get_mut(..) };
            shuffled.map(shuffle);
        }
        NonZeroUsize::new(all.len()).map(|_| Masters { all, current: 0, failures: 0 })
    }

    /// Whether there are several.
    pub fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Returns the master that is used or tried.
    pub fn current(&self) -> &Address {
        &self.all[self.current]
    }

    /// Returns the preferred master unless it is the current one.
    pub fn preferred(&self) -> Option<&Address> {
        self.all.first().filter(|_| self.current > 0)
    }

    /// Records that the current master cannot be reached or is lost; the next one becomes the current one.
    pub fn failed(&mut self) -> Next {
        self.current = (self.current + 1) % self.all.len();
        self.failures += 1;
        if self.failures.is_multiple_of(self.all.len()) { Next::Pause } else { Next::Try }
    }

    /// Records that the minion is connected to the current master.
    pub fn connected(&mut self) {
        self.failures = 0;
    }

    /// Makes the preferred master the current one after it has become available again.
    pub fn fail_back(&mut self) {
        self.current = 0;
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masters(count: usize) -> Masters {
        let master = (0..count).map(|number| format!("m{number}")).collect();
        Masters::read(&MinionConfig { master, ..MinionConfig::default() }, "m1", |_| ()).unwrap()
    }

    /// Simulates a sequence of events: `+` for a connection, `-` for a failure or a loss, `<` for the return to the
    /// first. Returns the current master after each step, in brackets where the minion pauses.
    fn play(masters: &mut Masters, story: &str) -> String {
        let step = |letter: char| {
            let next = match letter {
                '+' => {
                    masters.connected();
                    Next::Try
                }
                '-' => masters.failed(),
                _ => {
                    masters.fail_back();
                    Next::Try
                }
            };
            let number = masters.current().host.trim_start_matches('m').to_owned();
            if next == Next::Pause { format!("({number})") } else { number }
        };
        story.chars().map(step).collect()
    }

    #[test]
    fn lost_masters_are_tried_in_a_ring() {
        for (count, story, expected) in [
            // The loss of the first and of the second master are handled alike.
            (2, "+-+-+", "01100"),
            // Three masters in their order, from wherever the minion was.
            (3, "+-+-+-+", "0112200"),
            (3, "+--+", "0122"),
            // All are down at the start: each is tried, then the minion pauses, again and again.
            (3, "---------+", "12(0)12(0)12(0)0"),
            // All are lost after a connection: a whole round before the pause.
            (3, "+---", "012(0)"),
            // The only master fails again and again: a pause after each attempt.
            (1, "--+-", "(0)(0)0(0)"),
            // Back to the first, which fails: the second is tried at once.
            (2, "+-+<-+", "011011"),
        ] {
            assert_eq!(play(&mut masters(count), story), expected, "{count} {story}");
        }
    }

    #[test]
    fn the_first_is_preferred_and_the_order_may_be_random() {
        let mut three = masters(3);
        assert_eq!(three.preferred(), None);
        three.failed();
        assert_eq!(three.preferred().map(|first| first.host.as_str()), Some("m0"));
        three.fail_back();
        assert_eq!((three.preferred(), three.current().host.as_str()), (None, "m0"));
        let order = |config: &MinionConfig, id: &str| -> String {
            let all = Masters::read(config, id, <[Address]>::reverse).unwrap().all;
            all.iter().map(|master| master.host.as_str()).collect()
        };
        for (random_master, master_shuffle, master_failback, expected) in [
            (false, false, false, "abc"),
            (true, false, false, "cba"),
            (false, true, false, "cba"),
            (true, false, true, "acb"),
        ] {
            let master = ["a", "b", "c"].map(str::to_owned).to_vec();
            let config =
                MinionConfig { master, random_master, master_shuffle, master_failback, ..MinionConfig::default() };
            assert_eq!(order(&config, "m1"), expected);
        }
        for (id, expected) in [("m1", "abc"), ("m3", "bac"), ("m4", "cab")] {
            let (master, kind) = (["a", "b", "c"].map(str::to_owned).to_vec(), "distributed".to_owned());
            let config = MinionConfig { master, master_type: kind, ..MinionConfig::default() };
            assert_eq!(order(&config, id), expected, "{id}");
        }
        assert!(Masters::read(&MinionConfig { master: Vec::new(), ..MinionConfig::default() }, "m1", |_| ()).is_none());
    }
}
