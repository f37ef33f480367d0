//! The slots of connections: in total, of one address, and of clients that have not logged in.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use brine_metrics::{Counter, Gauge};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The maximum numbers of connections. IPv6 addresses count by network; loopback is exempt from limits of an address.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Of all addresses.
    pub total: usize,
    /// Of one address.
    pub per_address: usize,
    /// Of clients without a login: in total, and half of it for one address. The one that is idle for longest is closed
    /// in favour of another one. `None` for a server without logins.
    pub unauthenticated: Option<usize>,
}

/// What counts the connections of a server.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionMetrics {
    /// The open connections.
    pub open: Option<&'static Gauge>,
    /// The connections that were closed at once.
    pub refused: &'static Counter,
    /// The connections without a login that were closed in favour of others.
    pub evicted: Option<&'static Counter>,
}

/// The open connections of a server.
pub struct Connections {
    counts: Mutex<Counts>,
    began: Instant,
    limits: ConnectionLimits,
    metrics: ConnectionMetrics,
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
    /// Creates the slots of a server without connections.
    pub fn new(limits: ConnectionLimits, metrics: ConnectionMetrics) -> Self {
        Connections { counts: Mutex::default(), began: Instant::now(), limits, metrics }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes a slot; `None` if there are too many connections. If too many clients have not logged in, one of them is
    /// evicted.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let slot = self.take_within_limits(network(address));
        if slot.is_none() {
            self.metrics.refused.add(1);
        }
        slot
    }

    fn take_within_limits(self: &Arc<Self>, network: IpAddr) -> Option<Slot> {
        let mut counts = self.counts.lock();
        let of_address = counts.by_network.get(&network).copied().unwrap_or(0);
        // Loopback is exempt from limits of an address: a local proxy uses one address for all its clients.
        let is_own = network.is_loopback();
        if counts.all >= self.limits.total || (of_address >= self.limits.per_address && !is_own) {
            return None;
        }
        if let Some(most) = self.limits.unauthenticated {
            let unauthenticated = counts.unauthenticated.get(&network).map_or(0, BTreeMap::len);
            let mut evicted = None;
            if unauthenticated >= most / 2 && !is_own {
                evicted = Some(counts.evict(Some(network))?);
            } else if counts.open_unauthenticated >= most {
                evicted = Some(counts.evict(None)?);
            }
            if let Some(evicted) = evicted {
                if let Some(metric) = self.metrics.evicted {
                    metric.add(1);
                }
                evicted.evicted.cancel();
            }
        }
        let (id, activity) = (counts.next, Arc::new(Activity { last: self.now().into(), ..Activity::default() }));
        counts.next += 1;
        counts.all += 1;
        *counts.by_network.entry(network).or_default() += 1;
        counts.unauthenticated.entry(network).or_default().insert(id, Arc::clone(&activity));
        counts.open_unauthenticated += 1;
        if let Some(open) = self.metrics.open {
            open.add(1);
        }
        Some(Slot { connections: Arc::clone(self), network, id, activity })
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

/// The slot of an open connection.
pub struct Slot {
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
        if let Some(open) = self.connections.metrics.open {
            open.sub(1);
        }
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

    static REFUSED: Counter = Counter::new("refused", "");
    const METRICS: ConnectionMetrics = ConnectionMetrics { open: None, refused: &REFUSED, evicted: None };

    fn connections(total: usize, per_address: usize, unauthenticated: Option<usize>) -> Arc<Connections> {
        Arc::new(Connections::new(ConnectionLimits { total, per_address, unauthenticated }, METRICS))
    }

    fn address(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn connections_are_limited_in_total_and_by_network() {
        let slots = connections(5, 2, Some(100));
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
    fn addresses_of_a_network_count_together_and_loopback_has_no_limit_of_its_own() {
        let slots = connections(8, 3, None);
        let take = |address: &str| slots.take(address.parse().unwrap());
        let mut open: Vec<_> = (0..3).map(|n| take(&format!("2001:db8::{n:x}")).unwrap()).collect();
        assert!(take("2001:db8::ffff").is_none());
        open.push(take("2001:db8:1::1").unwrap());
        open.extend((open.len()..8).map(|_| take("::ffff:127.0.0.1").unwrap()));
        assert!(take("192.0.2.1").is_none() && take("127.0.0.1").is_none());
        open.remove(0);
        assert!(take("2001:db8::ffff").is_some());
        drop(open);
        assert!(slots.counts.lock().by_network.is_empty());
    }

    #[test]
    fn a_flood_without_logins_closes_its_own_connections() {
        let slots = connections(1000, 1000, Some(10));
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
