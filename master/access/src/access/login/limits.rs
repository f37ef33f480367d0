//! The limits of one authentication backend: concurrent logins, and a short queue. Further places of both are reserved
//! for addresses from which a user has logged in, so that strangers at many addresses do not keep users out while a
//! backend is slow.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use brine_auth::network;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::LoginError;

/// The number of concurrent logins per backend, and of those that are reserved beside them.
const CONCURRENT: usize = 4;
const RESERVED_CONCURRENT: usize = 1;
/// The maximum number of queued logins, and of those that are reserved beside them.
const QUEUED: usize = 60;
const RESERVED_QUEUED: usize = 15;
/// The maximum numbers in all.
#[cfg(test)]
pub(super) const MAX_CONCURRENT: usize = CONCURRENT + RESERVED_CONCURRENT;
#[cfg(test)]
pub(super) const MAX_QUEUED: usize = QUEUED + RESERVED_QUEUED;
/// The maximum time in the queue.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The maximum number of addresses with reserved places; of more, those are forgotten whose last login is the oldest.
const MAX_KNOWN: usize = 1000;

/// The limits of one backend.
pub(super) struct BackendLimits {
    open: Lane,
    reserved: Lane,
    /// Addresses from which a user has logged in, each with the number of its last login. `None` is this host.
    known: Mutex<Known>,
    /// The longest time in which the backend rejected a password, in milliseconds.
    pub slowest: AtomicU64,
}

#[derive(Default)]
struct Known {
    logins: u64,
    last: HashMap<Option<IpAddr>, u64>,
}

/// Places of the queue and of the concurrent logins.
struct Lane {
    queue: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

/// A permit of a backend's queue and of its concurrent logins. It is held by the thread that calls the backend, so that
/// a client that disconnects does not free it.
pub(super) struct LoginPermit {
    _queue: OwnedSemaphorePermit,
    _running: OwnedSemaphorePermit,
}

impl Lane {
    fn new(running: usize, queued: usize) -> Self {
        Lane { queue: Arc::new(Semaphore::new(running + queued)), running: Arc::new(Semaphore::new(running)) }
    }
}

impl BackendLimits {
    pub fn new() -> Self {
        BackendLimits {
            open: Lane::new(CONCURRENT, QUEUED),
            reserved: Lane::new(RESERVED_CONCURRENT, RESERVED_QUEUED),
            known: Mutex::default(),
            slowest: AtomicU64::new(0),
        }
    }

    /// Records that a user has logged in from an address.
    pub fn succeeded(&self, address: Option<IpAddr>) {
        let mut addresses = self.known.lock();
        addresses.logins += 1;
        let number = addresses.logins;
        addresses.last.insert(address.map(network), number);
        if addresses.last.len() > MAX_KNOWN
            && let Some(oldest) = addresses.last.iter().min_by_key(|(_, number)| **number).map(|(address, _)| *address)
        {
            addresses.last.remove(&oldest);
        }
    }

    /// Waits for a place for a login from this address.
    pub async fn permit_from(&self, address: Option<IpAddr>) -> Result<LoginPermit, LoginError> {
        let is_known = self.known.lock().last.contains_key(&address.map(network));
        self.permit(is_known).await
    }

    /// Waits for a place. Reserved ones are taken only if the others are.
    pub async fn permit(&self, may_use_reserved: bool) -> Result<LoginPermit, LoginError> {
        let room = |lane: &Lane| Arc::clone(&lane.queue).try_acquire_owned().ok();
        let reserved = || may_use_reserved.then(|| room(&self.reserved)).flatten();
        let queue = room(&self.open).or_else(reserved).ok_or(LoginError::Busy)?;
        let turn = |lane: &Lane| Arc::clone(&lane.running).acquire_owned();
        let running = async {
            tokio::select! {
                biased;
                running = turn(&self.open) => running,
                running = turn(&self.reserved), if may_use_reserved => running,
            }
        };
        match tokio::time::timeout(MAX_WAIT, running).await {
            Ok(Ok(running)) => Ok(LoginPermit { _queue: queue, _running: running }),
            _ => Err(LoginError::Busy),
        }
    }

    /// Returns the number of logins that could start at once.
    #[cfg(test)]
    pub fn free(&self) -> usize {
        self.open.running.available_permits() + self.reserved.running.available_permits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> Option<IpAddr> {
        Some(std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).into())
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_do_not_keep_users_out_of_a_slow_backend() {
        let limits = Arc::new(BackendLimits::new());
        limits.succeeded(address(1));
        // The backend never answers strangers.
        for number in 100..1000 {
            let limits = Arc::clone(&limits);
            tokio::spawn(async move {
                let _held = limits.permit_from(address(number)).await;
                std::future::pending::<()>().await;
            });
        }
        tokio::task::yield_now().await;
        for _ in 0..100 {
            assert!(matches!(limits.permit_from(address(2)).await, Err(LoginError::Busy)));
            assert!(limits.permit_from(address(1)).await.is_ok());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_places_are_bounded() {
        let limits = BackendLimits::new();
        limits.succeeded(None);
        let mut held = Vec::new();
        for _ in 0..MAX_CONCURRENT {
            held.push(limits.permit_from(None).await.unwrap());
        }
        assert_eq!(limits.free(), 0);
        let started = tokio::time::Instant::now();
        assert!(limits.permit_from(None).await.is_err());
        assert_eq!(started.elapsed(), MAX_WAIT);
        held.pop();
        assert!(limits.permit_from(None).await.is_ok());
    }

    #[test]
    fn the_oldest_addresses_are_forgotten() {
        let limits = BackendLimits::new();
        for number in 0..=MAX_KNOWN as u32 {
            limits.succeeded(address(number));
            limits.succeeded(address(1));
        }
        let addresses = limits.known.lock();
        assert_eq!(addresses.last.len(), MAX_KNOWN);
        let is_known = |number| addresses.last.contains_key(&address(number));
        assert!(!is_known(0) && is_known(1) && is_known(MAX_KNOWN as u32));
    }
}
