//! `auth_rate_limit`: how many authentications a second one address may send. Further ones wait for their turn; where
//! too many wait already, they are dropped, and their minions try again later.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// So many seconds of the rate may come at once: fleets behind one address join together.
const BURST: u32 = 10;
/// The longest that a request waits.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How many addresses are remembered; then those that owe nothing are forgotten.
const ADDRESSES: usize = 65_536;

/// The rates of all addresses.
pub(crate) struct AuthLimit {
    per_second: u32,
    /// For each address, when it has paid for all that it sent.
    paid: Mutex<HashMap<IpAddr, Instant>>,
}

impl AuthLimit {
    /// Creates a limit of this rate; 0 for none.
    pub fn new(per_second: u32) -> Self {
        AuthLimit { per_second, paid: Mutex::default() }
    }

    /// Waits until an authentication from this address may be handled. Returns whether it may at all.
    pub async fn admit(&self, address: &str) -> bool {
        match self.wait_for(address, Instant::now()) {
            Some(Duration::ZERO) => true,
            Some(wait) => {
                tokio::time::sleep(wait).await;
                true
            }
            None => false,
        }
    }

    /// Returns the wait of a request that comes now; nothing if it is to be dropped.
    fn wait_for(&self, address: &str, now: Instant) -> Option<Duration> {
        let Some(cost) = Duration::from_secs(1).checked_div(self.per_second) else { return Some(Duration::ZERO) };
        // Local sockets have no address; who may open them is local root.
        let Ok(address) = address.parse::<SocketAddr>() else { return Some(Duration::ZERO) };
        let mut paid = self.paid.lock();
        if paid.len() >= ADDRESSES {
            paid.retain(|_, paid| *paid > now);
        }
        let is_known = paid.len() < ADDRESSES || paid.contains_key(&address.ip());
        let until = (*paid.get(&address.ip()).unwrap_or(&now)).max(now) + cost;
        let wait = until.duration_since(now).saturating_sub(cost * self.per_second * BURST);
        if wait > LONGEST_WAIT || !is_known {
            return None;
        }
        paid.insert(address.ip(), until);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_has_a_burst_then_a_rate_then_nothing() {
        let limit = AuthLimit::new(10);
        let now = Instant::now();
        let waits: Vec<_> = (0..200).map(|_| limit.wait_for("10.0.0.1:5", now)).collect();
        assert_eq!(waits[..100], [Some(Duration::ZERO); 100]);
        assert_eq!(waits[100], Some(Duration::from_millis(100)));
        assert_eq!(waits[149], Some(Duration::from_secs(5)));
        assert_eq!(waits[150..], [None; 50]);
        assert_eq!(limit.wait_for("10.0.0.2:5", now), Some(Duration::ZERO));
        assert_eq!(limit.wait_for("10.0.0.1:6", now + Duration::from_secs(20)), Some(Duration::ZERO));
    }

    #[tokio::test]
    async fn no_limit_lets_all_pass() {
        let limit = AuthLimit::new(0);
        assert_eq!(limit.wait_for("10.0.0.1:5", Instant::now()), Some(Duration::ZERO));
    }
}
