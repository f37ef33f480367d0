//! Throttles password guessing without locking users out.
//!
//! | failures of | effect |
//! |---|---|
//! | a user from one address | attempts of this user from this address are refused for a pause that doubles each time |
//! | an address, for any users | attempts from this address are refused in the same way, later |
//! | a user from all addresses | attempts of this user are delayed by a few seconds, never refused |
//!
//! So whoever guesses at a user's password stops itself, and slows the user down a little. Attempts in progress count
//! as failures until they end, so that concurrent guesses gain nothing.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::names::fold;

/// The failures of a user without a pause or delay, for typing mistakes.
const FREE_FAILURES: u32 = 3;
/// The failures of an address without a pause: many users may share one.
const FREE_OF_ADDRESS: u32 = 10;
/// The pause after the first throttled failure; it doubles up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The delay of a user after failures from anywhere; it doubles up to the maximum.
const FIRST_DELAY: Duration = Duration::from_millis(250);
const MAX_DELAY: Duration = Duration::from_secs(4);
/// The time after which failures are forgotten.
const FAILURE_LIFETIME: Duration = Duration::from_secs(900);
/// The maximum number of addresses, of users, and of pairs of both.
const MAX_ENTRIES: usize = 10_000;

/// A backend, and the folded name of a user.
type Account = (String, String);

/// The failures of users and addresses.
#[derive(Default)]
pub struct Throttle {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    addresses: Table<IpAddr>,
    pairs: Table<(Account, IpAddr)>,
    users: Table<Account>,
}

/// Failures by key, bounded in number.
struct Table<K>(HashMap<K, Failures>);

impl<K> Default for Table<K> {
    fn default() -> Self {
        Table(HashMap::new())
    }
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    /// The number of attempts that have begun and not ended.
    running: u32,
    last: Instant,
}

impl Failures {
    fn none(now: Instant) -> Self {
        Failures { count: 0, running: 0, last: now }
    }

    fn is_remembered(&self, now: Instant) -> bool {
        self.running > 0 || now.saturating_duration_since(self.last) < FAILURE_LIFETIME
    }

    /// Returns the time until the next attempt; zero if it may begin now. Beyond the free failures attempts begin one
    /// at a time.
    fn pause(&self, free: u32, now: Instant) -> Duration {
        let since = now.saturating_duration_since(self.last);
        if self.count > free {
            let pause = doubled(FIRST_PAUSE, self.count - free - 1, MAX_PAUSE);
            let rest = pause.saturating_sub(since);
            return if self.running > 0 { rest.max(FIRST_PAUSE) } else { rest };
        }
        if self.count.saturating_add(self.running) > free { FIRST_PAUSE } else { Duration::ZERO }
    }

    /// Returns the delay of the next attempt of a user.
    fn delay(&self) -> Duration {
        match self.count.saturating_add(self.running).checked_sub(FREE_FAILURES + 1) {
            None => Duration::ZERO,
            Some(doublings) => doubled(FIRST_DELAY, doublings, MAX_DELAY),
        }
    }
}

fn doubled(first: Duration, doublings: u32, max: Duration) -> Duration {
    first.saturating_mul(1 << doublings.min(16)).min(max)
}

impl<K: Eq + Hash + Clone> Table<K> {
    fn get(&self, key: &K, now: Instant) -> Failures {
        let failures = self.0.get(key).copied().filter(|failures| failures.is_remembered(now));
        failures.unwrap_or_else(|| Failures::none(now))
    }

    fn update(&mut self, key: &K, now: Instant, change: impl FnOnce(&mut Failures)) {
        let mut failures = self.get(key, now);
        change(&mut failures);
        if failures.count == 0 && failures.running == 0 {
            self.0.remove(key);
            return;
        }
        if self.0.len() >= MAX_ENTRIES && !self.0.contains_key(key) {
            self.0.retain(|_, failures| failures.is_remembered(now));
            // The oldest entries are evicted, so that attempts with ever new names cannot fill the memory.
            if self.0.len() >= MAX_ENTRIES
                && let Some(oldest) =
                    self.0.iter().min_by_key(|(_, failures)| failures.last).map(|(key, _)| key.clone())
            {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(key.clone(), failures);
    }

    fn begin(&mut self, key: &K, now: Instant) {
        self.update(key, now, |failures| failures.running = failures.running.saturating_add(1));
    }

    fn end(&mut self, key: &K, outcome: Option<Outcome>, forgives: bool, now: Instant) {
        self.update(key, now, |failures| {
            failures.running = failures.running.saturating_sub(1);
            match outcome {
                Some(Outcome::Failed) => {
                    failures.count = failures.count.saturating_add(1);
                    failures.last = now;
                }
                Some(Outcome::Succeeded) if forgives => failures.count = 0,
                _ => {}
            }
        });
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The password was right.
    Succeeded,
    /// The user or the password was wrong.
    Failed,
}

/// Returns the address that limits apply to. For IPv6 this is the /64 network, since one host can use all of its
/// addresses.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        own_or_v4 => own_or_v4,
    }
}

/// An admitted attempt. It counts as running until it is dropped.
pub struct Attempt {
    throttle: Arc<Throttle>,
    account: Account,
    address: Option<IpAddr>,
    /// The time to wait before the password is verified.
    delay: Duration,
    is_ended: bool,
}

impl Throttle {
    /// Begins an attempt. Local users have no address: their failures only delay.
    ///
    /// # Errors
    /// The attempt is refused, with the time until the next one.
    pub fn begin(
        self: &Arc<Self>,
        address: Option<IpAddr>,
        eauth: &str,
        user: &str,
        now: Instant,
    ) -> Result<Attempt, Duration> {
        let (account, address) = ((eauth.to_owned(), fold(user)), address.map(network));
        let mut state = self.state.lock();
        if let Some(address) = address {
            let pair = (account.clone(), address);
            let of_pair = state.pairs.get(&pair, now).pause(FREE_FAILURES, now);
            let of_address = state.addresses.get(&address, now).pause(FREE_OF_ADDRESS, now);
            let pause = of_pair.max(of_address);
            if !pause.is_zero() {
                return Err(pause);
            }
            state.pairs.begin(&pair, now);
            state.addresses.begin(&address, now);
        }
        let delay = state.users.get(&account, now).delay();
        state.users.begin(&account, now);
        drop(state);
        Ok(Attempt { throttle: Arc::clone(self), account, address, delay, is_ended: false })
    }

    /// Ends an attempt. A success forgives the failures of the user, but not those of the address: a user with one
    /// password could guess others.
    fn end(&self, attempt: &Attempt, outcome: Option<Outcome>, now: Instant) {
        let mut state = self.state.lock();
        state.users.end(&attempt.account, outcome, true, now);
        if let Some(address) = attempt.address {
            state.pairs.end(&(attempt.account.clone(), address), outcome, true, now);
            state.addresses.end(&address, outcome, false, now);
        }
    }
}

impl Attempt {
    /// Returns the time to wait before the password is verified.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Ends the attempt with its outcome. An attempt that is dropped, for example because the backend fails, counts
    /// neither as a success nor as a failure.
    pub fn end(mut self, outcome: Outcome, now: Instant) {
        self.is_ended = true;
        self.throttle.end(&self, Some(outcome), now);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_ended {
            // The time is only used to forget old failures.
            self.throttle.end(self, None, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests;
