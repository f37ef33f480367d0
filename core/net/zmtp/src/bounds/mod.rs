//! Limits on the resources that peers use: connections, in total and of one address, and bytes of messages in transit.
//!
//! Messages of unauthenticated peers are small. A minion opens a connection for each request, and its first message may
//! be large, so the addresses of authenticated peers are remembered: such an address may send large messages, within a
//! byte limit on all unauthenticated connections together. The messages of authenticated connections have a byte limit,
//! too, of which each address has a share.

mod addresses;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::metrics;
use addresses::{Addresses, ConnectionLimits, network};

/// The time for which an address is remembered after its last authenticated request.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);
/// The unit of memory accounting, in bytes.
const UNIT: usize = 1024;
/// Bytes of messages in transit on all authenticated connections.
const AUTHENTICATED_MEMORY: usize = 512 << 20;
/// The maximum of one address: the rest stays available when a minion is hostile.
const SHARE: usize = AUTHENTICATED_MEMORY / 4;

/// The limits on peers.
#[derive(Debug, Clone, Copy)]
pub struct PeerLimits {
    /// Connections of all peers; 0 for three quarters of the limit on open files.
    pub connections: usize,
    /// Connections of one address; 0 for a quarter of all if no peer of it has authenticated, else seven eighths.
    pub per_address: usize,
    /// Bytes of one message of an unauthenticated peer.
    pub unauthenticated_message: usize,
    /// Bytes of messages in transit on all unauthenticated connections.
    pub unauthenticated_memory: usize,
    /// The timeout for receiving a message that has begun, and for a peer to read a sent one.
    pub message_time: Duration,
}

impl Default for PeerLimits {
    fn default() -> Self {
        PeerLimits {
            connections: 0,
            per_address: 0,
            unauthenticated_message: 64 << 10,
            unauthenticated_memory: 64 << 20,
            message_time: Duration::from_secs(60),
        }
    }
}

/// The limits that the sockets of one daemon share.
#[derive(Debug, Clone)]
pub struct Bounds(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: PeerLimits,
    connections: usize,
    began: Instant,
    addresses: Mutex<Addresses>,
    unauthenticated: Arc<Semaphore>,
    authenticated: Arc<Semaphore>,
}

/// The limit that a connection would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExceededLimit {
    #[error("there are {0} connections (max_connections)")]
    Total(usize),
    #[error("there are {0} connections of addresses without an authenticated peer (max_connections)")]
    Unknown(usize),
    #[error("its address has {0} connections (max_connections_per_address)")]
    Address(usize),
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds::new(PeerLimits::default())
    }
}

impl Bounds {
    /// Creates the limits of one daemon.
    pub fn new(limits: PeerLimits) -> Self {
        let connections = match limits.connections {
            0 => open_files().map_or(10_000, |files| files - files / 4),
            limit => limit,
        };
        let memory = |bytes: usize| Arc::new(Semaphore::new((bytes / UNIT).min(u32::MAX as usize)));
        Bounds(Arc::new(Inner {
            limits,
            connections,
            began: Instant::now(),
            addresses: Mutex::default(),
            unauthenticated: memory(limits.unauthenticated_memory),
            authenticated: memory(AUTHENTICATED_MEMORY),
        }))
    }

    /// Returns the timeout for a message that has begun.
    pub(super) fn message_time(&self) -> Duration {
        self.0.limits.message_time
    }

    /// Counts a connection. If unknown addresses hold all their connections, evicts one of them.
    pub(super) fn open(&self, address: IpAddr, trust: &Arc<Trust>) -> Result<Open, ExceededLimit> {
        let network = network(address);
        let limits = ConnectionLimits { total: self.0.connections, per_address: self.0.limits.per_address };
        let (id, evicted) = self.0.addresses.lock().open(network, trust, trust.is_local, limits)?;
        if let Some(evicted) = evicted {
            metrics::CONNECTIONS_EVICTED.add(1);
            evicted.evicted.notify_one();
        }
        metrics::CONNECTIONS.add(1);
        Ok(Open { bounds: self.clone(), network, id })
    }

    /// Remembers the address of an authenticated peer.
    fn remember(&self, address: IpAddr) {
        self.0.addresses.lock().remember(network(address), Instant::now() + REMEMBERED);
    }

    fn is_known(&self, address: IpAddr) -> bool {
        self.0.addresses.lock().is_known(network(address))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Counts one connection until dropped.
#[derive(Debug)]
pub(super) struct Open {
    bounds: Bounds,
    network: IpAddr,
    id: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        metrics::CONNECTIONS.sub(1);
        self.bounds.0.addresses.lock().close(self.network, self.id);
    }
}

/// Reserves memory for a message in transit until dropped.
#[derive(Debug)]
pub struct Memory {
    _permit: OwnedSemaphorePermit,
    _of_share: Option<OwnedSemaphorePermit>,
}

/// Whether a message may be received.
pub(super) enum Admitted {
    Yes(Memory),
    /// Not now: the reader waits for memory.
    Later,
    No,
}

/// The authentication state of one connection's peer, and the limits that follow from it.
#[derive(Debug)]
pub(super) struct Trust {
    bounds: Bounds,
    address: Option<IpAddr>,
    /// Whether the peer runs on this host.
    is_local: bool,
    is_authenticated: AtomicBool,
    /// The time of the last complete message, in milliseconds since creation of the limits.
    last_message: AtomicU64,
    evicted: Notify,
    share: OnceLock<Arc<Semaphore>>,
}

impl Trust {
    pub fn new(bounds: Bounds, address: Option<IpAddr>, is_local: bool) -> Self {
        Trust {
            address,
            is_local,
            is_authenticated: AtomicBool::new(false),
            last_message: AtomicU64::new(bounds.now()),
            evicted: Notify::new(),
            share: OnceLock::new(),
            bounds,
        }
    }

    pub fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// Records that the connection has delivered a request that authenticates its sender.
    pub fn authenticate(&self) {
        self.is_authenticated.store(true, Ordering::Relaxed);
        self.remember_address();
    }

    /// Remembers the peer's address as authenticated.
    pub fn remember_address(&self) {
        if let Some(address) = self.address {
            self.bounds.remember(address);
        }
    }

    /// Records that the connection has delivered a complete message.
    pub fn received(&self) {
        if !self.is_authenticated() {
            self.last_message.store(self.bounds.now(), Ordering::Relaxed);
        }
    }

    pub fn last_message(&self) -> u64 {
        self.last_message.load(Ordering::Relaxed)
    }

    /// Waits until the connection is evicted.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Returns the memory shared by the authenticated connections of the peer's address.
    fn share(&self) -> Option<&Arc<Semaphore>> {
        let address = self.address?;
        let new = || self.bounds.0.addresses.lock().share(network(address), SHARE / UNIT);
        Some(self.share.get_or_init(new))
    }

    /// Whether a message of this size may be received.
    pub fn admit(&self, size: usize) -> Admitted {
        let Inner { limits, unauthenticated, authenticated, .. } = &*self.bounds.0;
        if self.is_authenticated() {
            let taken = |memory: &Arc<Semaphore>, most| Arc::clone(memory).try_acquire_many_owned(units(size, most));
            let Ok(of_share) = self.share().map(|share| taken(share, SHARE)).transpose() else {
                return Admitted::Later;
            };
            return match taken(authenticated, AUTHENTICATED_MEMORY) {
                Ok(permit) => Admitted::Yes(Memory { _permit: permit, _of_share: of_share }),
                Err(_) => Admitted::Later,
            };
        }
        let may_be_large = || self.is_local || self.address.is_some_and(|address| self.bounds.is_known(address));
        if size > limits.unauthenticated_message && !may_be_large() {
            return Admitted::No;
        }
        match Arc::clone(unauthenticated).try_acquire_many_owned(units(size, AUTHENTICATED_MEMORY)) {
            Ok(permit) => Admitted::Yes(Memory { _permit: permit, _of_share: None }),
            Err(_) => Admitted::No,
        }
    }

    /// Waits for memory for a message of an authenticated peer, within the message timeout.
    pub async fn wait_for_memory(&self, size: usize) -> Option<Memory> {
        let inner = &*self.bounds.0;
        let taken = |memory: &Arc<Semaphore>, most| Arc::clone(memory).acquire_many_owned(units(size, most));
        let memory = async {
            // The address's share is acquired first: a connection that waits for common memory then holds no more than
            // a share.
            let of_share = match self.share() {
                Some(share) => Some(taken(share, SHARE).await.ok()?),
                None => None,
            };
            let permit = taken(&inner.authenticated, AUTHENTICATED_MEMORY).await.ok()?;
            Some(Memory { _permit: permit, _of_share: of_share })
        };
        tokio::time::timeout(inner.limits.message_time, memory).await.ok()?
    }
}

/// Returns the memory units of a message, capped at `most` bytes: a larger message reserves all of it.
fn units(size: usize, most: usize) -> u32 {
    u32::try_from(size.min(most).div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// Returns the process's limit on open files.
fn open_files() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests;
