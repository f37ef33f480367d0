//! `auth_rate_limit`: limits the rate of authentications per address. Excess ones are delayed, and dropped if too many
//! are waiting. Their minions retry later; Brine's minions at the time named in the reply.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The burst, in seconds of the rate: a fleet behind one address authenticates at once.
const BURST: u32 = 10;
/// The maximum delay of a request.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// The maximum number of addresses. Beyond it, addresses below their rate are forgotten.
const MAX_ADDRESSES: usize = 65_536;

/// The rate limits of all addresses.
pub(crate) struct AuthLimit {
    per_second: u32,
    /// The time until which each address has used up its rate.
    paid: Mutex<HashMap<IpAddr, Instant>>,
}

impl AuthLimit {
    /// Creates a limit with this rate per second; 0 is unlimited.
    pub fn new(per_second: u32) -> Self {
        AuthLimit { per_second, paid: Mutex::default() }
    }

    /// Waits as the rate limit of the address requires.
    ///
    /// # Errors
    /// The authentication is dropped. The error is the time after which the address may retry.
    pub async fn admit(&self, address: &str) -> Result<(), Duration> {
        match self.delay(address, Instant::now())? {
            Duration::ZERO => {}
            wait => tokio::time::sleep(wait).await,
        }
        Ok(())
    }

    /// Returns the delay of a request. If it is dropped, returns the time after which it would not be delayed, as an
    /// error.
    fn delay(&self, address: &str, now: Instant) -> Result<Duration, Duration> {
        let Some(cost) = Duration::from_secs(1).checked_div(self.per_second) else { return Ok(Duration::ZERO) };
        // Local sockets have no address; only local root may open them.
        let Ok(address) = address.parse::<SocketAddr>() else { return Ok(Duration::ZERO) };
        let mut paid = self.paid.lock();
        if paid.len() >= MAX_ADDRESSES {
            paid.retain(|_, paid| *paid > now);
        }
        let is_known = paid.len() < MAX_ADDRESSES || paid.contains_key(&address.ip());
        let until = (*paid.get(&address.ip()).unwrap_or(&now)).max(now) + cost;
        let wait = until.duration_since(now).saturating_sub(cost * self.per_second * BURST);
        if wait > MAX_DELAY || !is_known {
            return Err(wait.max(MAX_DELAY));
        }
        paid.insert(address.ip(), until);
        Ok(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_has_a_burst_then_delays_then_refusals() {
        let limit = AuthLimit::new(10);
        let now = Instant::now();
        let waits: Vec<_> = (0..200).map(|_| limit.delay("10.0.0.1:5", now)).collect();
        assert_eq!(waits[..100], [Ok(Duration::ZERO); 100]);
        assert_eq!(waits[100], Ok(Duration::from_millis(100)));
        assert_eq!(waits[149], Ok(Duration::from_secs(5)));
        assert_eq!(waits[150..], [Err(Duration::from_millis(5100)); 50]);
        assert_eq!(limit.delay("10.0.0.2:5", now), Ok(Duration::ZERO));
        assert_eq!(limit.delay("10.0.0.1:6", now + Duration::from_secs(20)), Ok(Duration::ZERO));
    }

    #[tokio::test]
    async fn without_a_limit_all_requests_are_admitted() {
        let limit = AuthLimit::new(0);
        assert_eq!(limit.delay("10.0.0.1:5", Instant::now()), Ok(Duration::ZERO));
    }
}
