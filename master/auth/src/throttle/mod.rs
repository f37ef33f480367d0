//! Throttles password guessing: after failures an address and a user have to wait, with a delay that doubles each time.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The number of failures without a pause, for typing mistakes.
const FREE_FAILURES: u32 = 3;
/// The pause after the first throttled failure; it doubles up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The time after which failures are forgotten.
const FAILURE_LIFETIME: Duration = Duration::from_secs(900);
/// The maximum number of addresses, and of users.
const MAX_ENTRIES: usize = 10_000;

/// Failures by address and by user. Local users have no address.
#[derive(Default)]
pub struct Throttle {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    addresses: HashMap<IpAddr, Failures>,
    users: HashMap<(String, String), Failures>,
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    fn pause(self) -> Duration {
        match self.count.checked_sub(FREE_FAILURES + 1) {
            None => Duration::ZERO,
            Some(doublings) => FIRST_PAUSE.saturating_mul(1 << doublings.min(16)).min(MAX_PAUSE),
        }
    }

    fn remaining(self, now: Instant) -> Duration {
        self.pause().saturating_sub(now.saturating_duration_since(self.last))
    }
}

/// Returns the address that limits apply to. For IPv6 this is the /64 network, since one host can use all of its
/// addresses.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        own_or_v4 => own_or_v4,
    }
}

/// Returns the key of a user. It ignores case and whitespace, as many backends do.
fn account(eauth: &str, user: &str) -> (String, String) {
    let folded: Vec<String> = user.split_whitespace().map(str::to_lowercase).collect();
    (eauth.to_owned(), folded.join(" "))
}

impl Throttle {
    /// Returns the remaining delay before the next attempt; zero if it may be made now.
    pub fn remaining(&self, address: Option<IpAddr>, eauth: &str, user: &str, now: Instant) -> Duration {
        let state = self.state.lock();
        let of_address = address.and_then(|address| state.addresses.get(&network(address)));
        let of_user = state.users.get(&account(eauth, user));
        let all = [of_address, of_user].into_iter().flatten();
        all.map(|failures| failures.remaining(now)).max().unwrap_or_default()
    }

    /// Records the outcome of an attempt. A success resets the failures of the user, not those of the address: a user
    /// with one password could guess others.
    pub fn record(&self, address: Option<IpAddr>, eauth: &str, user: &str, success: bool, now: Instant) {
        let mut state = self.state.lock();
        let user = account(eauth, user);
        if success {
            state.users.remove(&user);
            return;
        }
        count(&mut state.users, user, now);
        if let Some(address) = address {
            count(&mut state.addresses, network(address), now);
        }
    }
}

fn count<K: Eq + Hash + Clone>(all: &mut HashMap<K, Failures>, key: K, now: Instant) {
    let is_remembered = |failures: &Failures| now.saturating_duration_since(failures.last) < FAILURE_LIFETIME;
    if all.len() >= MAX_ENTRIES && !all.contains_key(&key) {
        all.retain(|_, failures| is_remembered(failures));
        // The oldest entries are evicted, so that attempts with ever new names cannot fill the memory.
        if all.len() >= MAX_ENTRIES
            && let Some(oldest) = all.iter().min_by_key(|(_, failures)| failures.last).map(|(key, _)| key.clone())
        {
            all.remove(&oldest);
        }
    }
    let failures = all.entry(key).or_insert(Failures { count: 0, last: now });
    if !is_remembered(failures) {
        failures.count = 0;
    }
    failures.count = failures.count.saturating_add(1);
    failures.last = now;
}

#[cfg(test)]
mod tests;
