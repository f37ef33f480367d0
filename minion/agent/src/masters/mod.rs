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
mod tests;
