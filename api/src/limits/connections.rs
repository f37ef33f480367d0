//! The slots of connections: in total, of one address, and of clients that have not logged in.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use brine_config::RestConfig;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::metrics;

/// The open connections.
pub(crate) struct Connections {
    counts: Mutex<Counts>,
    began: Instant,
    max: usize,
    max_per_address: usize,
    max_unauthenticated: usize,
}

/// The counts of open connections. The addresses of an IPv6 network count together, since one host can use all of them.
#[derive(Default)]
struct Counts {
    all: usize,
    by_network: HashMap<IpAddr, usize>,
    /// The connections without a login by id; ids ascend with age.
    unauthenticated: HashMap<IpAddr, BTreeMap<u64, Arc<Activity>>>,
    open_unauthenticated: usize,
    next: u64,
}

/// What a connection without a login does.
#[derive(Default)]
struct Activity {
    /// Whether a whole request is being handled.
    is_busy: AtomicBool,
    /// The time of its last request, or of its beginning, in milliseconds since the start.
    last: AtomicU64,
    evicted: CancellationToken,
}

impl Counts {
    fn remove_unauthenticated(&mut self, network: IpAddr, id: u64) -> Option<Arc<Activity>> {
        let own = self.unauthenticated.get_mut(&network)?;
        let removed = own.remove(&id)?;
        if own.is_empty() {
            self.unauthenticated.remove(&network);
        }
        self.open_unauthenticated -= 1;
        Some(removed)
    }

    /// Removes the connection to close in favour of another one: of the addresses with the most connections, the one
    /// that is idle for longest and whose request is not being handled.
    fn evict(&mut self, only: Option<IpAddr>) -> Option<Arc<Activity>> {
        let networks = self.unauthenticated.iter().filter(|(network, _)| only.is_none_or(|only| only == **network));
        let idlest = |own: &BTreeMap<u64, Arc<Activity>>| {
            let idle = own.iter().filter(|(_, activity)| !activity.is_busy.load(Ordering::Relaxed));
            idle.map(|(id, activity)| (activity.last.load(Ordering::Relaxed), *id)).min()
        };
        let idle = networks.filter_map(|(network, own)| Some((own.len(), idlest(own)?, *network)));
        let (_, (_, id), network) =
            idle.max_by_key(|(count, (last, id), _)| (*count, std::cmp::Reverse((*last, *id))))?;
        self.remove_unauthenticated(network, id)
    }
}

impl Connections {
    pub fn new(options: &RestConfig) -> Self {
        Connections {
            counts: Mutex::default(),
            began: Instant::now(),
            max: options.max_connections,
            max_per_address: options.max_connections_per_address,
            max_unauthenticated: options.max_unauthenticated_connections.max(2),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes a slot; `None` if there are too many connections. If too many clients have not logged in, one of them is
    /// evicted.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let network = brine_auth::network(address);
        let mut counts = self.counts.lock();
        let of_address = counts.by_network.get(&network).copied().unwrap_or(0);
        // Loopback is exempt from limits of an address: a local proxy uses one address for all its clients.
        let is_own = network.is_loopback();
        if counts.all >= self.max || (of_address >= self.max_per_address && !is_own) {
            return None;
        }
        let unauthenticated = counts.unauthenticated.get(&network).map_or(0, BTreeMap::len);
        let mut evicted = None;
        if unauthenticated >= self.max_unauthenticated / 2 && !is_own {
            evicted = Some(counts.evict(Some(network))?);
        } else if counts.open_unauthenticated >= self.max_unauthenticated {
            evicted = Some(counts.evict(None)?);
        }
        if let Some(evicted) = evicted {
            metrics::CONNECTIONS_EVICTED.add(1);
            evicted.evicted.cancel();
        }
        let (id, activity) = (counts.next, Arc::new(Activity { last: self.now().into(), ..Activity::default() }));
        counts.next += 1;
        counts.all += 1;
        *counts.by_network.entry(network).or_default() += 1;
        counts.unauthenticated.entry(network).or_default().insert(id, Arc::clone(&activity));
        counts.open_unauthenticated += 1;
        metrics::CONNECTIONS.add(1);
        Some(Slot { connections: Arc::clone(self), network, id, activity })
    }
}

/// The slot of an open connection.
pub(crate) struct Slot {
    connections: Arc<Connections>,
    network: IpAddr,
    id: u64,
    activity: Arc<Activity>,
}

impl Slot {
    /// Records that a request of the connection has authenticated its sender.
    pub fn authenticate(&self) {
        self.connections.counts.lock().remove_unauthenticated(self.network, self.id);
    }

    /// Records whether a request is being handled.
    pub fn set_busy(&self, is_busy: bool) {
        self.activity.last.store(self.connections.now(), Ordering::Relaxed);
        self.activity.is_busy.store(is_busy, Ordering::Relaxed);
    }

    /// Waits until the connection is to be closed in favour of others.
    pub async fn evicted(&self) {
        self.activity.evicted.cancelled().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        metrics::CONNECTIONS.sub(1);
        let mut counts = self.connections.counts.lock();
        counts.all -= 1;
        counts.remove_unauthenticated(self.network, self.id);
        if let Some(count) = counts.by_network.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                counts.by_network.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(max: usize, max_per_address: usize, unauthenticated: usize) -> Arc<Connections> {
        Arc::new(Connections::new(&RestConfig {
            max_connections: max,
            max_connections_per_address: max_per_address,
            max_unauthenticated_connections: unauthenticated,
            ..RestConfig::default()
        }))
    }

    fn address(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn connections_are_limited_in_total_and_by_network() {
        let slots = connections(5, 2, 100);
        let (one, other, own) = (address(1), address(2), IpAddr::from([127, 0, 0, 1]));
        let mut taken = vec![slots.take(one).unwrap(), slots.take(one).unwrap()];
        assert!(slots.take(one).is_none());
        taken.push(slots.take(other).unwrap());
        taken.extend([slots.take(own).unwrap(), slots.take(own).unwrap()]);
        assert!(slots.take(other).is_none() && slots.take(own).is_none());
        taken.remove(0);
        assert!(slots.take(one).is_some());
        drop(taken);
        let counts = slots.counts.lock();
        assert!(counts.by_network.is_empty() && counts.unauthenticated.is_empty() && counts.open_unauthenticated == 0);
    }

    #[test]
    fn a_flood_without_logins_closes_its_own_connections() {
        let slots = connections(1000, 1000, 10);
        let user = slots.take(address(1)).unwrap();
        user.authenticate();
        let quiet = slots.take(address(2)).unwrap();
        let busy: Vec<Slot> = (0..2).map(|_| slots.take(address(3)).unwrap()).collect();
        for slot in &busy {
            slot.set_busy(true);
        }
        let flood: Vec<Slot> = (0..20).map(|_| slots.take(address(3)).unwrap()).collect();
        let evicted = |slot: &Slot| slot.activity.evicted.is_cancelled();
        // An address has half of the slots.
        assert_eq!(flood.iter().filter(|slot| !evicted(slot)).count(), 3);
        assert!(!evicted(&flood[19]) && !busy.iter().any(evicted) && !evicted(&quiet) && !evicted(&user));
        // Further addresses take the rest, then evict connections of the address with the most.
        let others: Vec<Slot> = (4..10).map(|number| slots.take(address(number)).unwrap()).collect();
        assert!(!others.iter().any(evicted) && !evicted(&quiet));
        assert_eq!(slots.counts.lock().open_unauthenticated, 10);
        // Requests that are being handled stay.
        for slot in flood.iter().chain(&others) {
            slot.set_busy(true);
        }
        quiet.set_busy(true);
        assert!(slots.take(address(11)).is_none());
        quiet.set_busy(false);
        assert!(slots.take(address(11)).is_some() && evicted(&quiet));
        drop((user, quiet, busy, flood, others));
        assert_eq!(slots.counts.lock().all, 0);
    }
}
