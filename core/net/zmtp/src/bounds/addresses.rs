//! Counts the open connections of each address, and selects the one to evict when there are too many.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;

use super::{ExceededLimit, Trust};

/// The maximum number of authenticated addresses that are remembered.
pub(super) const ADDRESSES: usize = 1 << 16;

/// All addresses that have open connections or have authenticated.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    entries: HashMap<IpAddr, Address>,
    open: usize,
    next_id: u64,
    /// The unknown addresses with open connections; the last one is evicted first.
    unknown: BTreeSet<(Rank, IpAddr)>,
    /// The number of their connections.
    open_unknown: usize,
    /// The number of addresses with `known_until`.
    known: usize,
}

/// The number of connections of an address, and the id of the oldest one.
type Rank = (usize, Reverse<u64>);

#[derive(Debug, Default)]
struct Address {
    /// The open connections by id; ids ascend in the order of opening.
    open: BTreeMap<u64, Arc<Trust>>,
    known_until: Option<Instant>,
    /// Whether the peers run on this host.
    is_local: bool,
    /// The share of memory for messages in transit on authenticated connections.
    share: Option<Arc<Semaphore>>,
}

impl Address {
    fn is_known(&self) -> bool {
        self.is_local || self.known_until.is_some()
    }

    fn rank(&self) -> Option<Rank> {
        let (oldest, _) = self.open.first_key_value().filter(|_| !self.is_known())?;
        Some((self.open.len(), Reverse(*oldest)))
    }
}

/// The maximum numbers of connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// Of all addresses.
    pub total: usize,
    /// Of one address; 0 for the default of [`PeerLimits`](super::PeerLimits).
    pub per_address: usize,
}

impl ConnectionLimits {
    fn of_address(self, is_known: bool) -> usize {
        match self.per_address {
            0 if is_known => self.total - self.total / 8,
            0 => (self.total / 4).max(1),
            limit => limit,
        }
    }

    fn of_unknown(self) -> usize {
        (self.total / 2).max(1)
    }
}

impl Addresses {
    /// Changes an entry and updates the counts. Removes an entry that is no longer needed.
    fn change<T>(&mut self, network: IpAddr, change: impl FnOnce(&mut Address) -> T) -> T {
        let entry = self.entries.entry(network).or_default();
        let (open, rank, was_known) = (entry.open.len(), entry.rank(), entry.known_until.is_some());
        let result = change(entry);
        let (open_now, rank_now, known_now) = (entry.open.len(), entry.rank(), entry.known_until.is_some());
        if open_now == 0 && !known_now {
            self.entries.remove(&network);
        }
        self.open = self.open - open + open_now;
        self.known = self.known - usize::from(was_known) + usize::from(known_now);
        if let Some(rank) = rank {
            self.open_unknown -= rank.0;
            self.unknown.remove(&(rank, network));
        }
        if let Some(rank) = rank_now {
            self.open_unknown += rank.0;
            self.unknown.insert((rank, network));
        }
        result
    }

    /// Counts a new connection. Returns its id, and the connection that is evicted for it, which no longer counts.
    pub fn open(
        &mut self,
        network: IpAddr,
        trust: &Arc<Trust>,
        is_local: bool,
        limits: ConnectionLimits,
    ) -> Result<(u64, Option<Arc<Trust>>), ExceededLimit> {
        self.expire(network);
        let (of_address, was_known) = self.entries.get(&network).map_or((0, false), |e| (e.open.len(), e.is_known()));
        let is_known = was_known || (is_local && of_address == 0);
        let mut evicted = None;
        if self.open >= limits.total {
            return Err(ExceededLimit::Total(self.open));
        } else if of_address >= limits.of_address(is_known) {
            return Err(ExceededLimit::Address(of_address));
        } else if !is_known && self.open_unknown >= limits.of_unknown() {
            evicted = Some(self.evict().ok_or(ExceededLimit::Unknown(self.open_unknown))?);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.change(network, |entry| {
            entry.is_local |= is_local && entry.open.is_empty();
            entry.open.insert(id, Arc::clone(trust));
        });
        Ok((id, evicted))
    }

    /// Evicts a connection of an unknown address: of the address with the most connections, the one idle for longest.
    /// An address with few connections therefore keeps them during a flood from others.
    fn evict(&mut self) -> Option<Arc<Trust>> {
        let idle = |network: &IpAddr| {
            let open = &self.entries.get(network)?.open;
            let unauthenticated = open.iter().filter(|(_, trust)| !trust.is_authenticated());
            unauthenticated.min_by_key(|(_, trust)| trust.last_message()).map(|(id, _)| (*network, *id))
        };
        let (network, id) = self.unknown.iter().rev().find_map(|(_, network)| idle(network))?;
        self.close(network, id)
    }

    /// Removes a connection from the count. Returns it, unless it was evicted before.
    pub fn close(&mut self, network: IpAddr, id: u64) -> Option<Arc<Trust>> {
        self.change(network, |entry| entry.open.remove(&id))
    }

    /// Remembers the address of an authenticated peer.
    pub fn remember(&mut self, network: IpAddr, until: Instant) {
        self.change(network, |entry| entry.known_until = Some(until));
        if self.known > ADDRESSES {
            let addresses = self.entries.iter().filter_map(|(network, entry)| Some((entry.known_until?, *network)));
            if let Some((_, oldest)) = addresses.min() {
                self.change(oldest, |entry| entry.known_until = None);
            }
        }
    }

    /// Expires a remembered address.
    fn expire(&mut self, network: IpAddr) {
        let until = self.entries.get(&network).and_then(|entry| entry.known_until);
        if until.is_some_and(|until| until <= Instant::now()) {
            self.change(network, |entry| entry.known_until = None);
        }
    }

    /// Whether a peer of this address has authenticated or runs on this host.
    pub fn is_known(&mut self, network: IpAddr) -> bool {
        self.expire(network);
        self.entries.get(&network).is_some_and(Address::is_known)
    }

    /// Returns the memory budget, in units, that the authenticated connections of an address share.
    pub fn share(&mut self, network: IpAddr, units: usize) -> Arc<Semaphore> {
        let new = || Arc::new(Semaphore::new(units));
        match self.entries.get_mut(&network) {
            Some(entry) => Arc::clone(entry.share.get_or_insert_with(new)),
            // The connection of the address has just been evicted.
            None => new(),
        }
    }

    /// Returns the numbers of connections, of connections of unknown addresses, and of addresses.
    #[cfg(test)]
    pub fn counts(&self) -> (usize, usize, usize) {
        assert_eq!(self.unknown.iter().map(|((count, _), _)| count).sum::<usize>(), self.open_unknown);
        (self.open, self.open_unknown, self.entries.len())
    }
}

/// Returns the address that limits apply to: for IPv6, the network assigned to a host.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        address => address,
    }
}
