//! Bounds on what peers hold of a daemon: connections, in total and of one address, and bytes of messages under way.
//!
//! Until a peer has authenticated its messages are small. A minion opens a connection for each request, and its first
//! message may be large, so the addresses of authenticated peers are remembered, too: such an address may send large
//! messages, of which all unauthenticated connections together hold a bounded number of bytes.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::metrics;

/// How long the address of an authenticated peer is remembered after its last authenticated request.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);
/// How many such addresses are remembered.
const ADDRESSES: usize = 1 << 16;
/// The unit in which memory is counted.
const UNIT: usize = 1024;
/// Bytes of messages under way on all authenticated connections.
const AUTHENTICATED_MEMORY: usize = 512 << 20;

/// What peers may hold.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// Connections of all peers; 0 for three quarters of the limit on open files.
    pub connections: usize,
    /// Connections of one address; 0 for a quarter of all if no peer of it has authenticated, else seven eighths.
    pub per_address: usize,
    /// Bytes of one message of an unauthenticated peer.
    pub unauthenticated_message: usize,
    /// Bytes of messages under way on all unauthenticated connections.
    pub unauthenticated_memory: usize,
    /// How long a peer may take for a message that it has begun, and for reading what is sent to it.
    pub message_time: Duration,
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance {
            connections: 0,
            per_address: 0,
            unauthenticated_message: 64 << 10,
            unauthenticated_memory: 64 << 20,
            message_time: Duration::from_secs(60),
        }
    }
}

/// The bounds that the sockets of one daemon share.
#[derive(Debug, Clone)]
pub struct Bounds(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    allowance: Allowance,
    connections: usize,
    table: Mutex<Table>,
    unauthenticated: Arc<Semaphore>,
    authenticated: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Table {
    addresses: HashMap<IpAddr, Address>,
    open: usize,
    /// Open connections of addresses that are not known.
    open_unknown: usize,
    /// How many addresses have `known_until`.
    known: usize,
}

#[derive(Debug, Default)]
struct Address {
    open: usize,
    known_until: Option<Instant>,
    /// The peers run on this host.
    is_local: bool,
}

impl Address {
    fn is_known(&self) -> bool {
        self.is_local || self.known_until.is_some()
    }
}

/// Which bound a connection would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Exceeded {
    #[error("there are {0} connections (max_connections)")]
    Total(usize),
    #[error("there are {0} connections of addresses without an authenticated peer (max_connections)")]
    Unknown(usize),
    #[error("its address has {0} connections (max_connections_per_address)")]
    Address(usize),
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds::new(Allowance::default())
    }
}

impl Bounds {
    /// Creates the bounds of one daemon.
    pub fn new(allowance: Allowance) -> Self {
        let connections = match allowance.connections {
            0 => open_files().map_or(10_000, |files| files - files / 4),
            given => given,
        };
        let memory = |bytes: usize| Arc::new(Semaphore::new((bytes / UNIT).min(u32::MAX as usize)));
        Bounds(Arc::new(Inner {
            allowance,
            connections,
            table: Mutex::default(),
            unauthenticated: memory(allowance.unauthenticated_memory),
            authenticated: memory(AUTHENTICATED_MEMORY),
        }))
    }

    /// How long a peer may take for a message that it has begun.
    pub(super) fn message_time(&self) -> Duration {
        self.0.allowance.message_time
    }

    /// Counts a connection.
    pub(super) fn open(&self, address: IpAddr, is_local: bool) -> Result<Open, Exceeded> {
        let network = network(address);
        let all = self.0.connections;
        let mut table = self.0.table.lock();
        table.expire(network);
        let (open, open_unknown) = (table.open, table.open_unknown);
        let entry = table.addresses.entry(network).or_default();
        // Only an entry without connections changes here: `open_unknown` stays right.
        entry.is_local |= is_local && entry.open == 0;
        let is_known = entry.is_known();
        let most = match self.0.allowance.per_address {
            0 if is_known => all - all / 8,
            0 => (all / 4).max(1),
            given => given,
        };
        let exceeded = if open >= all {
            Some(Exceeded::Total(open))
        } else if entry.open >= most {
            Some(Exceeded::Address(entry.open))
        } else if !is_known && open_unknown >= (all / 2).max(1) {
            Some(Exceeded::Unknown(open_unknown))
        } else {
            None
        };
        if let Some(exceeded) = exceeded {
            table.forget_unused(network);
            return Err(exceeded);
        }
        entry.open += 1;
        table.open += 1;
        table.open_unknown += usize::from(!is_known);
        metrics::CONNECTIONS.add(1);
        Ok(Open { bounds: self.clone(), network })
    }

    /// Remembers the address of an authenticated peer.
    fn remember(&self, address: IpAddr) {
        let network = network(address);
        let mut table = self.0.table.lock();
        let table = &mut *table;
        let entry = table.addresses.entry(network).or_default();
        if !entry.is_known() {
            table.open_unknown -= entry.open;
        }
        table.known += usize::from(entry.known_until.is_none());
        entry.known_until = Some(Instant::now() + REMEMBERED);
        if table.known > ADDRESSES {
            let known = table.addresses.iter().filter_map(|(network, entry)| Some((entry.known_until?, *network)));
            if let Some((_, oldest)) = known.min() {
                table.unknow(oldest);
            }
        }
    }

    fn is_known(&self, address: IpAddr) -> bool {
        let network = network(address);
        let mut table = self.0.table.lock();
        table.expire(network);
        table.addresses.get(&network).is_some_and(Address::is_known)
    }
}

impl Table {
    /// Forgets that an address is known if its time is over.
    fn expire(&mut self, network: IpAddr) {
        let until = self.addresses.get(&network).and_then(|entry| entry.known_until);
        if until.is_some_and(|until| until <= Instant::now()) {
            self.unknow(network);
        }
    }

    fn unknow(&mut self, network: IpAddr) {
        let Some(entry) = self.addresses.get_mut(&network) else { return };
        if entry.known_until.take().is_some() {
            self.known -= 1;
            if !entry.is_local {
                self.open_unknown += entry.open;
            }
        }
        self.forget_unused(network);
    }

    fn forget_unused(&mut self, network: IpAddr) {
        if self.addresses.get(&network).is_some_and(|entry| entry.open == 0 && entry.known_until.is_none()) {
            self.addresses.remove(&network);
        }
    }
}

/// One connection that is counted, until this is dropped.
#[derive(Debug)]
pub(super) struct Open {
    bounds: Bounds,
    network: IpAddr,
}

impl Drop for Open {
    fn drop(&mut self) {
        metrics::CONNECTIONS.sub(1);
        let mut table = self.bounds.0.table.lock();
        let table = &mut *table;
        table.open -= 1;
        if let Some(entry) = table.addresses.get_mut(&self.network) {
            entry.open -= 1;
            table.open_unknown -= usize::from(!entry.is_known());
        }
        table.forget_unused(self.network);
    }
}

/// Memory for a message under way, until this is dropped.
#[derive(Debug)]
pub struct Memory {
    _permit: OwnedSemaphorePermit,
}

/// Whether a message may come in.
pub(super) enum Admitted {
    Yes(Memory),
    /// Once there is memory.
    Later,
    No,
}

/// How far the peer of one connection is trusted.
#[derive(Debug)]
pub(super) struct Trust {
    bounds: Bounds,
    address: Option<IpAddr>,
    /// The peer runs on this host.
    is_local: bool,
    is_authenticated: AtomicBool,
}

impl Trust {
    pub fn new(bounds: Bounds, address: Option<IpAddr>, is_local: bool) -> Self {
        Trust { bounds, address, is_local, is_authenticated: AtomicBool::new(false) }
    }

    pub fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// The connection has brought a request that proves who sent it.
    pub fn authenticate(&self) {
        self.is_authenticated.store(true, Ordering::Relaxed);
        self.remember_address();
    }

    /// Remembers the peer's address as one of an authenticated peer.
    pub fn remember_address(&self) {
        if let Some(address) = self.address {
            self.bounds.remember(address);
        }
    }

    /// Whether a message of this size may come in.
    pub fn admit(&self, size: usize) -> Admitted {
        let Inner { allowance, unauthenticated, authenticated, .. } = &*self.bounds.0;
        let units = units(size);
        if self.is_authenticated() {
            return match Arc::clone(authenticated).try_acquire_many_owned(units) {
                Ok(permit) => Admitted::Yes(Memory { _permit: permit }),
                Err(_) => Admitted::Later,
            };
        }
        let may_be_large = || self.is_local || self.address.is_some_and(|address| self.bounds.is_known(address));
        if size > allowance.unauthenticated_message && !may_be_large() {
            return Admitted::No;
        }
        match Arc::clone(unauthenticated).try_acquire_many_owned(units) {
            Ok(permit) => Admitted::Yes(Memory { _permit: permit }),
            Err(_) => Admitted::No,
        }
    }

    /// Waits for memory for a message of an authenticated peer, as long as a message may take.
    pub async fn wait_for_memory(&self, size: usize) -> Option<Memory> {
        let inner = &*self.bounds.0;
        let memory = Arc::clone(&inner.authenticated).acquire_many_owned(units(size));
        let permit = tokio::time::timeout(inner.allowance.message_time, memory).await.ok()?.ok()?;
        Some(Memory { _permit: permit })
    }
}

/// A message that is larger than all memory takes all of it.
fn units(size: usize) -> u32 {
    u32::try_from(size.min(AUTHENTICATED_MEMORY).div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// What counts as one address: of IPv6 the network that one host is given.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        address => address,
    }
}

/// The limit on the open files of this process.
fn open_files() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(connections: usize, per_address: usize) -> Bounds {
        Bounds::new(Allowance { connections, per_address, ..Allowance::default() })
    }

    fn address(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    #[test]
    fn unknown_addresses_leave_connections_to_known_ones() {
        let bounds = bounds(16, 0);
        let open = |n| bounds.open(address(n), false);
        let one: Vec<_> = (0..4).map(|_| open(1).unwrap()).collect();
        assert_eq!(open(1).unwrap_err(), Exceeded::Address(4));
        let two: Vec<_> = (0..4).map(|_| open(2).unwrap()).collect();
        assert_eq!(open(3).unwrap_err(), Exceeded::Unknown(8));
        // One that authenticates has room, and gives room to others.
        bounds.remember(address(1));
        let more: Vec<_> = (0..8).map(|_| open(1).unwrap()).collect();
        assert_eq!(open(1).unwrap_err(), Exceeded::Total(16));
        drop((one, two));
        assert!(open(3).is_ok());
        drop(more);
        assert_eq!(bounds.0.table.lock().open, 0);
        assert_eq!(bounds.0.table.lock().open_unknown, 0);
        assert_eq!(bounds.0.table.lock().addresses.len(), 1);
    }

    #[test]
    fn a_known_address_does_not_take_all_connections() {
        let bounds = bounds(16, 0);
        bounds.remember(address(1));
        let _most: Vec<_> = (0..14).map(|_| bounds.open(address(1), false).unwrap()).collect();
        assert_eq!(bounds.open(address(1), false).unwrap_err(), Exceeded::Address(14));
        assert!(bounds.open(address(2), false).is_ok());
    }

    #[test]
    fn a_given_bound_holds_for_every_address() {
        let bounds = bounds(100, 2);
        for (n, is_local) in [(1, false), (2, true)] {
            let _two = (bounds.open(address(n), is_local).unwrap(), bounds.open(address(n), is_local).unwrap());
            assert_eq!(bounds.open(address(n), is_local).unwrap_err(), Exceeded::Address(2));
        }
    }

    #[test]
    fn large_messages_are_for_known_addresses_within_the_memory() {
        let bounds = Bounds::new(Allowance { unauthenticated_memory: 1 << 20, ..Allowance::default() });
        let trust = |n, is_local| Trust::new(bounds.clone(), Some(address(n)), is_local);
        let (unknown, known, local) = (trust(1, false), trust(2, false), trust(3, true));
        known.remember_address();
        for (trust, small, large) in [(&unknown, true, false), (&known, true, true), (&local, true, true)] {
            assert_eq!(matches!(trust.admit(60_000), Admitted::Yes(_)), small);
            assert_eq!(matches!(trust.admit(100_000), Admitted::Yes(_)), large);
        }
        let Admitted::Yes(held) = known.admit(1 << 20) else { panic!("there is memory") };
        assert!(matches!(unknown.admit(5_000), Admitted::No));
        // What authenticated connections hold is counted apart.
        known.authenticate();
        assert!(matches!(known.admit(1 << 20), Admitted::Yes(_)));
        drop(held);
        assert!(matches!(unknown.admit(5_000), Admitted::Yes(_)));
    }

    #[test]
    fn remembered_addresses_are_bounded_and_ipv6_networks_count_as_one() {
        let bounds = bounds(16, 0);
        for n in 0..=u32::try_from(ADDRESSES).unwrap() {
            bounds.remember(IpAddr::from(n.to_be_bytes()));
        }
        assert_eq!(bounds.0.table.lock().addresses.len(), ADDRESSES);
        assert!(!bounds.is_known([0, 0, 0, 0].into()) && bounds.is_known([0, 0, 0, 1].into()));
        bounds.remember("2001:db8::1".parse().unwrap());
        assert!(bounds.is_known("2001:db8::2".parse().unwrap()));
        assert!(!bounds.is_known("2001:db8:0:1::1".parse().unwrap()));
    }
}
