//! The presence of minions, published as `salt/presence/change` and `salt/presence/present`.
//!
//! Subscribers of the publish port are anonymous, but requests are authenticated. For each address, as many minions
//! count as present as the publish port has connections from it: first those with an open request connection, then
//! those with the most recent requests. Salt compares the same addresses with the grains of the minions, which are not
//! authenticated.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use brine_ids::MinionId;
use brine_master_store::events::Events;
use brine_master_store::shared::{self, OptionalGate};
use brine_value::map;
use brine_zmtp::Peer;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::Facts;

/// The interval at which connections are checked.
const OBSERVE_INTERVAL: Duration = Duration::from_secs(5);
/// The time without a connection after which a minion is certainly disconnected: longer than a minion takes to connect
/// again after a short outage (`recon_max`).
const ABSENT_AFTER: Duration = Duration::from_secs(15);
/// The time that minions have to connect after the start of the master, when a whole fleet authenticates.
const START_TIME: Duration = Duration::from_secs(60);

/// The last known address of each minion.
#[derive(Debug)]
pub struct Presence {
    traces: Mutex<Traces>,
    started: Instant,
}

impl Default for Presence {
    fn default() -> Self {
        Presence { traces: Mutex::default(), started: Instant::now() }
    }
}

#[derive(Debug, Default)]
struct Traces {
    minions: HashMap<MinionId, Trace>,
    requests: u64,
}

/// The recent requests of one minion.
#[derive(Debug)]
struct Trace {
    host: IpAddr,
    /// The number of the last request, counted over all minions.
    last: u64,
    /// The request connections: of the daemon, and of programs such as `salt-call`.
    connections: Vec<Weak<()>>,
    /// The time since which it was seen without a connection.
    absent_since: Option<Instant>,
}

impl Trace {
    fn is_connected(&self) -> bool {
        self.connections.iter().any(|connection| connection.strong_count() > 0)
    }
}

impl Presence {
    /// Records an authenticated request of a minion.
    pub fn record(&self, id: &MinionId, peer: &Peer) {
        let Ok(address) = peer.address.parse::<SocketAddr>() else { return };
        let host = address.ip().to_canonical();
        let mut heard = self.traces.lock();
        heard.requests += 1;
        let last = heard.requests;
        if !heard.minions.contains_key(id) {
            heard.minions.insert(id.clone(), Trace { host, last, connections: Vec::new(), absent_since: None });
        }
        let Some(trace) = heard.minions.get_mut(id) else { return };
        (trace.host, trace.last, trace.absent_since) = (host, last, None);
        if !trace.connections.iter().any(|connection| connection.ptr_eq(&peer.connection)) {
            trace.connections.retain(|connection| connection.strong_count() > 0);
            trace.connections.push(peer.connection.clone());
        }
    }

    /// Removes a minion whose session has ended.
    pub fn forget(&self, id: &MinionId) {
        self.traces.lock().minions.remove(id);
    }

    /// Records which minions have no connection at this time.
    fn observe(&self, now: Instant) {
        for trace in self.traces.lock().minions.values_mut() {
            trace.absent_since = if trace.is_connected() { None } else { trace.absent_since.or(Some(now)) };
        }
    }

    /// Returns the minions among these that have certainly been disconnected for a while. That is certain only while
    /// each subscriber of the publish port can be one of the minions with an open request connection: another one may be
    /// a minion that has been silent since the master started, as Salt's are.
    pub(super) fn certainly_absent(
        &self,
        ids: &[String],
        listening: &HashMap<IpAddr, usize>,
        now: Instant,
    ) -> Vec<String> {
        let heard = self.traces.lock();
        let mut connected: HashMap<IpAddr, usize> = HashMap::new();
        for trace in heard.minions.values().filter(|trace| trace.is_connected()) {
            *connected.entry(trace.host).or_default() += 1;
        }
        if listening.iter().any(|(host, count)| connected.get(host).copied().unwrap_or(0) < *count) {
            return Vec::new();
        }
        let has_waited = now.saturating_duration_since(self.started) > START_TIME;
        let is_absent = |id: &&String| match heard.minions.get(id.as_str()) {
            None => has_waited,
            Some(trace) => {
                !trace.is_connected()
                    && trace.absent_since.is_some_and(|since| now.saturating_duration_since(since) > ABSENT_AFTER)
            }
        };
        ids.iter().filter(is_absent).cloned().collect()
    }

    /// Returns the present minions with their addresses, given the number of connections to the publish port from each
    /// address.
    pub(super) fn present_addresses(&self, listening: &HashMap<IpAddr, usize>) -> BTreeMap<MinionId, IpAddr> {
        let heard = self.traces.lock();
        let mut by_host: HashMap<IpAddr, Vec<(&MinionId, &Trace)>> = HashMap::new();
        for (id, trace) in &heard.minions {
            by_host.entry(trace.host).or_default().push((id, trace));
        }
        let present = by_host.into_iter().flat_map(|(host, mut minions)| {
            minions.sort_by_key(|(_, trace)| std::cmp::Reverse((trace.is_connected(), trace.last)));
            minions.truncate(listening.get(&host).copied().unwrap_or(0));
            minions
        });
        present.map(|(id, trace)| (id.clone(), trace.host)).collect()
    }
}

/// Observes the connections of minions until `shutdown`.
pub async fn observe(facts: Arc<Facts>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(OBSERVE_INTERVAL);
    loop {
        tokio::select! {
            _ = ticks.tick() => facts.presence.observe(Instant::now()),
            () = shutdown.cancelled() => return,
        }
    }
}

/// Publishes presence events at an interval until `shutdown`: the changes, if there are any, and the present minions.
/// In a cluster the leader publishes them, for the minions of all members.
pub async fn publish(
    facts: Arc<Facts>,
    events: Events,
    gate: OptionalGate,
    interval: Duration,
    shutdown: CancellationToken,
) {
    let mut ticks = tokio::time::interval(interval);
    let mut before = BTreeSet::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let now = facts.present();
        let names = |ids: &mut dyn Iterator<Item = &MinionId>| ids.map(MinionId::to_string).collect::<Vec<_>>();
        if !shared::is_leader(&gate) {
            // The leader publishes. A new leader continues from this state.
            before = now;
            continue;
        }
        if now != before {
            let (new, lost) = (names(&mut now.difference(&before)), names(&mut before.difference(&now)));
            events.fire("salt/presence/change", &map! {"new" => new, "lost" => lost}).await;
        }
        events.fire("salt/presence/present", &map! {"present" => names(&mut now.iter())}).await;
        before = now;
    }
}

#[cfg(test)]
mod tests;
