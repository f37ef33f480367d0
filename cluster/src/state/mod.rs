//! The shared state of a member's tasks: positions, leadership, contact with the servers. Persisted in the master's store.

use std::pin::Pin;
use std::time::Duration;

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_event::Event;
use brine_reactor::{Admission, Gate};
use brine_value::{FromValue, Value, list, map, msgpack};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::message::EventPosition;
use crate::metrics;
use crate::positions::{Positions, StoredPositions};

const TABLE: Table = Table("cluster");
/// The keys of the member's table in the store.
const POSITIONS: &[u8] = b"positions";
const INCARNATION: &[u8] = b"incarnation";

/// The leadership as this member knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leadership {
    /// Another member leads, or none.
    No,
    /// This member leads until this time.
    Until(Instant),
}

struct Inner {
    positions: Positions,
    /// The number of the last stream message whose events are on the bus.
    stream_position: u64,
    lead: Leadership,
    term: u64,
    /// Whether this member was the last known leader.
    was_leader: bool,
    /// The time of the last response of the servers.
    contact: Option<Instant>,
    /// This member's last event whose reactions ran during an outage of the servers.
    handled_in_isolation: u64,
    /// This member's last event that the servers have stored.
    forwarded: u64,
}

/// The state of a member.
pub(crate) struct State {
    member: String,
    incarnation: String,
    lease: Duration,
    store: BlockingStore,
    inner: Mutex<Inner>,
    changed: watch::Sender<()>,
    started: Instant,
}

impl State {
    /// Reads the state of a member from the store.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn open(member: &str, lease: Duration, store: BlockingStore) -> Result<Self, StoreError> {
        let incarnation = if let Some(stored) = store.get(TABLE, INCARNATION)? {
            String::from_utf8_lossy(&stored).into_owned()
        } else {
            let new = brine_crypt::token::nonce();
            let mut batch = Batch::new();
            batch.put(TABLE, INCARNATION, new.clone().into_bytes());
            store.write_blocking(batch).durable_blocking()?;
            new
        };
        let stored = store.get(TABLE, POSITIONS)?.and_then(|packed| stored_positions(&packed));
        let (stream_position, positions) = stored.unwrap_or_default();
        let inner = Inner {
            positions,
            stream_position,
            lead: Leadership::No,
            term: 0,
            was_leader: false,
            contact: None,
            handled_in_isolation: 0,
            forwarded: 0,
        };
        Ok(State {
            member: member.to_owned(),
            incarnation,
            lease,
            store,
            inner: Mutex::new(inner),
            changed: watch::Sender::new(()),
            started: Instant::now(),
        })
    }

    /// Returns the name of this member.
    pub fn member(&self) -> &str {
        &self.member
    }

    /// Returns the incarnation: an identifier that changes when the store is lost.
    pub fn incarnation(&self) -> &str {
        &self.incarnation
    }

    /// Returns the number of the last stream message whose events are on the bus.
    pub fn stream_position(&self) -> u64 {
        self.inner.lock().stream_position
    }

    /// Calls `access` with the positions.
    pub fn with_positions<T>(&self, access: impl FnOnce(&mut Positions) -> T) -> T {
        let result = access(&mut self.inner.lock().positions);
        self.changed.send_replace(());
        result
    }

    /// Records that the events of the stream up to this message are on the bus. Returns the row to pass to
    /// [`State::store_positions`] once the journal has these events.
    pub fn reached(&self, position: u64) -> Vec<u8> {
        let mut inner = self.inner.lock();
        inner.stream_position = position;
        let stored = inner.positions.stored();
        let received = stored.received.into_iter().map(|(member, incarnation, seq)| list![member, incarnation, seq]);
        let former = stored.former.into_iter().map(|(member, incarnation)| list![member, incarnation]);
        let handled = stored.handled.into_iter().map(|(member, seq)| list![member, seq]);
        msgpack::pack_map(&map! {
            "stream" => position,
            "received" => received.collect::<Vec<Value>>(),
            "former" => former.collect::<Vec<Value>>(),
            "handled" => handled.collect::<Vec<Value>>(),
        })
    }

    /// Stores the positions in the stream and in the events of each member.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn store_positions(&self, row: Vec<u8>) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        batch.put(TABLE, POSITIONS, row);
        self.store.write_when_room(batch).await.durable().await
    }

    /// Records a response of the servers.
    pub fn servers_answered(&self) {
        self.inner.lock().contact = Some(Instant::now());
        metrics::CONNECTED.set(1);
    }

    /// Records that this member leads until this time; `None` if it does not lead.
    pub fn set_lead(&self, until: Option<Instant>) {
        let mut inner = self.inner.lock();
        let led = inner.leads();
        inner.lead = until.map_or(Leadership::No, Leadership::Until);
        if until.is_some() && !led {
            inner.term += 1;
        }
        let leads = inner.leads();
        if leads || inner.contact.is_some_and(|contact| contact.elapsed() < self.lease) {
            inner.was_leader = leads;
        }
        drop(inner);
        metrics::LEADER.set(u64::from(leads));
        self.changed.send_replace(());
    }

    /// Whether this member leads.
    pub fn leads(&self) -> bool {
        self.inner.lock().leads()
    }

    /// Records that the servers have stored this member's events up to `seq`.
    pub fn set_forwarded(&self, seq: u64) {
        let mut inner = self.inner.lock();
        inner.forwarded = inner.forwarded.max(seq);
    }

    /// Whether the servers have been away for longer than two leases. By then members that still have contact have
    /// elected a leader, and each isolated member handles its own events.
    pub fn is_isolated(&self) -> bool {
        let contact = self.inner.lock().contact.unwrap_or(self.started);
        let is_isolated = contact.elapsed() > self.lease * 2;
        if is_isolated {
            metrics::CONNECTED.set(0);
        }
        is_isolated
    }

    /// Returns the sequence number of this member's last event whose reactions ran during an outage; 0 if there is
    /// none.
    pub fn handled_in_isolation(&self) -> u64 {
        self.inner.lock().handled_in_isolation
    }

    /// Returns where the reactions to an event run; `None` if that is not known yet.
    fn decide(&self, member: &str, seq: u64) -> Option<Admission> {
        let is_isolated = self.is_isolated();
        let mut inner = self.inner.lock();
        if inner.positions.is_handled(member, seq) {
            return Some(Admission::OtherMaster);
        }
        let here = Some(Admission::ThisMaster { term: inner.term });
        if inner.leads() {
            return here;
        }
        if !is_isolated {
            return None;
        }
        if inner.was_leader {
            return here;
        }
        if member == self.member && seq > inner.forwarded {
            inner.handled_in_isolation = inner.handled_in_isolation.max(seq);
            return here;
        }
        // The servers have the event: the leader handles it, at the latest when they are back.
        Some(Admission::OtherMaster)
    }
}

impl Inner {
    fn leads(&self) -> bool {
        matches!(self.lead, Leadership::Until(until) if Instant::now() < until)
    }
}

impl Gate for State {
    fn admit<'a>(&'a self, event: &'a Event) -> Pin<Box<dyn Future<Output = Admission> + Send + 'a>> {
        Box::pin(async move {
            let (member, seq) = event.origin().unwrap_or_else(|| (self.member.clone(), event.seq()));
            let mut changed = self.changed.subscribe();
            loop {
                if let Some(admission) = self.decide(&member, seq) {
                    return admission;
                }
                // The expiry of a lease and an outage send no notification: they are polled.
                _ = tokio::time::timeout(self.lease / 4, changed.changed()).await;
            }
        })
    }

    fn term(&self) -> Option<u64> {
        let inner = self.inner.lock();
        inner.leads().then_some(inner.term)
    }

    fn is_leader(&self) -> bool {
        self.leads() || (self.is_isolated() && self.inner.lock().was_leader)
    }
}

fn stored_positions(packed: &[u8]) -> Option<(u64, Positions)> {
    let fields = msgpack::unpack_map(packed).ok()?;
    let received = fields.get("received")?.as_list()?.iter().map(|one| match one.as_list()? {
        [member, incarnation, seq] => {
            Some((member.as_str()?.to_owned(), incarnation.as_str()?.to_owned(), u64::from_value(seq)?))
        }
        _ => None,
    });
    let handled = fields.get("handled")?.as_list()?.iter().map(|one| match one.as_list()? {
        [member, seq] => Some::<EventPosition>((member.as_str()?.to_owned(), u64::from_value(seq)?)),
        _ => None,
    });
    let former =
        fields.get("former").and_then(Value::as_list).unwrap_or_default().iter().map(|one| match one.as_list()? {
            [member, incarnation] => Some((member.as_str()?.to_owned(), incarnation.as_str()?.to_owned())),
            _ => None,
        });
    let stored = StoredPositions {
        received: received.collect::<Option<_>>()?,
        former: former.collect::<Option<_>>()?,
        handled: handled.collect::<Option<_>>()?,
    };
    Some((u64::from_value(fields.get("stream")?)?, Positions::restore(stored)))
}

#[cfg(test)]
mod tests;
