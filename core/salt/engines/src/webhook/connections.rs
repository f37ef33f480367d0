//! The number of open connections, in total and by address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

/// The maximum number of connections, and of those of one address; loopback is exempt from the second limit, because a
/// local proxy uses one address for all its clients.
const MAX: usize = 256;
const MAX_PER_ADDRESS: usize = 32;

/// The open connections by network.
#[derive(Default)]
pub(super) struct Connections(Mutex<HashMap<IpAddr, usize>>);

/// An open connection.
pub(super) struct Slot {
    connections: Arc<Connections>,
    network: IpAddr,
}

impl Connections {
    /// Counts a connection; `None` if there are too many.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let network = network(address);
        let mut counts = self.0.lock();
        let (all, own): (usize, _) = (counts.values().sum(), counts.get(&network).copied().unwrap_or_default());
        if all >= MAX || own >= MAX_PER_ADDRESS && !network.is_loopback() {
            return None;
        }
        counts.insert(network, own + 1);
        Some(Slot { connections: Arc::clone(self), network })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.connections.0.lock();
        let left = counts.get(&self.network).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            counts.remove(&self.network);
        } else {
            counts.insert(self.network, left);
        }
    }
}

/// Returns the network of an address: one host can use all addresses of an IPv6 network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_in_total_and_by_network() {
        let connections = Arc::new(Connections::default());
        let take = |address: &str| connections.take(address.parse().unwrap());
        let mut open: Vec<_> = (0..MAX_PER_ADDRESS).map(|n| take(&format!("2001:db8::{n:x}")).unwrap()).collect();
        assert!(take("2001:db8::ffff").is_none());
        open.push(take("2001:db8:1::1").unwrap());
        open.extend((open.len()..MAX).map(|_| take("::ffff:127.0.0.1").unwrap()));
        assert!(take("192.0.2.1").is_none() && take("127.0.0.1").is_none());
        open.remove(0);
        assert!(take("2001:db8::ffff").is_some());
        drop(open);
        assert!(connections.0.lock().is_empty());
    }
}
