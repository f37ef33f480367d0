//! Publishes the events of the local bus to the cluster, in order. Events wait in the local journal during an outage of
//! the NATS servers; none is skipped.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use brine_bus::{Bus, Filter, Start, Subscription};
use brine_event::{Event, MASKED};
use brine_runtime::backoff::Backoff;
use brine_value::{FromValue, Value, msgpack};
use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::error::{LinkError, nats};
use crate::large::{is_large, is_outage, return_name, return_of};
use crate::link::Link;
use crate::message::{EventPosition, Item, Message, messages};
use crate::seal::MAX_DELAY;
use crate::shared::Shared;
use crate::state::State;
use crate::tables::SyncHandle;
use crate::{Local, SEALED, is_publish, metrics};

/// The name of the durable subscription to the local bus.
const CURSOR: &str = "cluster";
/// The name of the reactor's durable subscription, whose lag bounds the reported positions.
const REACTOR: &str = "reactor";
/// The interval at which the positions of the reactor are published.
const INTERVAL: Duration = Duration::from_millis(100);

/// The publishing side of a member.
pub(crate) struct Forwarder {
    pub link: Arc<Link>,
    pub state: Arc<State>,
    pub bus: Bus,
    pub sync_handle: Arc<SyncHandle>,
    pub local: Arc<dyn Local>,
    pub shared: Arc<Shared>,
}

impl Forwarder {
    /// Creates the durable cursor: events published from now on are forwarded to the cluster.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn subscribe(bus: &Bus) -> Result<Subscription, brine_bus::store::StoreError> {
        bus.subscribe(Filter::All, Start::Durable(CURSOR.into()))
    }

    /// Forwards events until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        tokio::select! {
            () = self.follow() => {}
            () = shutdown.cancelled() => {}
        }
        self.link.flush().await;
    }

    async fn follow(&self) {
        let mut events = match Self::subscribe(&self.bus) {
            Ok(events) => events,
            Err(error) => return tracing::error!(%error, "subscribing to the event bus failed"),
        };
        let (mut reported, mut led): (Vec<EventPosition>, bool) = (Vec::new(), false);
        let mut sent = events.position().saturating_sub(1);
        self.state.set_forwarded(sent);
        loop {
            let batch = tokio::select! {
                batch = events.recv_many() => batch,
                () = tokio::time::sleep(INTERVAL) => Some(Vec::new()),
            };
            let Some(batch) = batch else { return };
            if let Some(last) = batch.last().map(Event::seq) {
                self.send(batch).await;
                sent = last;
                self.state.set_forwarded(sent);
                events.commit(sent);
            }
            let leads = self.state.leads();
            if led && !leads {
                // Report again, for the next leader: a failed server may have lost the last report.
                reported.clear();
            }
            if led || leads {
                self.report(sent, &mut reported).await;
            }
            led = leads;
        }
    }

    /// Forwards the events of a batch that originate from this master. Returns when the servers have stored them.
    async fn send(&self, batch: Vec<Event>) {
        let own: Vec<&Event> = batch.iter().filter(|event| event.origin().is_none()).collect();
        if own.is_empty() {
            return;
        }
        if own.iter().any(|event| matches!(event.tag(), "salt/auth" | "salt/key")) {
            // Other members need the key before they react to its event.
            self.sync_handle.push_files().await;
        }
        for event in own.iter().filter(|event| is_large(event)) {
            self.send_large(event).await;
        }
        let count = own.len() as u64;
        let mut items = Vec::with_capacity(own.len());
        for event in own {
            items.push(self.item(event).await);
        }
        let messages = messages(self.state.incarnation(), items);
        self.publish_all(&messages).await;
        metrics::EVENTS_SENT.add(count);
    }

    /// Stores the whole return of a trimmed event on the servers, before its event is forwarded.
    async fn send_large(&self, event: &Event) {
        let Some((jid, id)) = return_of(event) else { return };
        let Some(whole) = self.local.large_return(jid, id).await else { return };
        let mut backoff = Backoff::default();
        let name = return_name(self.state.member(), id);
        while let Err(error) = self.shared.put_large(jid, &name, &whole).await {
            if !is_outage(&error) {
                tracing::warn!(jid, minion = id, %error, "sending a large return to the cluster failed: it stays on this master");
                break;
            }
            backoff.wait().await;
        }
        self.local.large_return_sent(jid, id).await;
    }

    async fn item(&self, event: &Event) -> Item {
        let (mut cause, mut reference) = (None, None);
        let is_publish = is_publish(event);
        // The body was validated when the event was published.
        _ = msgpack::scan(event.body(), |entry| {
            if entry.key == Some("_cause") {
                cause = msgpack::unpack(entry.value).ok().and_then(|value| u64::from_value(&value));
            }
            if is_publish && entry.key == Some(MASKED) {
                reference = msgpack::unpack(entry.value).ok().map(|value| value.to_string());
            }
        });
        let cause =
            cause.map(|number| self.state.with_positions(|positions| positions.position(self.state.member(), number)));
        let frame = match reference {
            Some(reference) => self.with_arguments(event, &reference).await.unwrap_or_else(|| event.frame().clone()),
            None => event.frame().clone(),
        };
        Item { seq: event.seq(), frame, cause }
    }

    /// Returns the frame of a publish with its masked arguments, for the minions of other members.
    async fn with_arguments(&self, event: &Event, reference: &str) -> Option<Bytes> {
        let arguments = self.local.sealed(reference).await?;
        let mut body = msgpack::unpack_map(event.body()).ok()?;
        body.insert(SEALED.into(), Value::Bytes(arguments));
        Some(Event::from_map(event.tag(), &body).ok()?.frame().clone())
    }

    /// Publishes the positions up to which the reactor of this leader has completed reactions, if they have changed.
    async fn report(&self, sent: u64, reported: &mut Vec<EventPosition>) {
        let own = self.state.member();
        let handled = {
            let lag = self.bus.lags().into_iter().find(|(name, _)| name == REACTOR).map_or(u64::MAX, |(_, lag)| lag);
            // Only events that are already forwarded count: later ones may have caused events that are not yet.
            let reached = self.bus.last_seq().saturating_sub(lag).min(sent);
            self.state.with_positions(|positions| {
                positions.handled_here(own, reached);
                positions.handled()
            })
        };
        if handled == *reported {
            return;
        }
        let message = Message {
            incarnation: self.state.incarnation().to_owned(),
            handled: handled.clone(),
            ..Message::default()
        };
        self.publish_all(&[message]).await;
        *reported = handled;
    }

    /// Publishes messages until the servers have stored all of them.
    async fn publish_all(&self, messages: &[Message]) {
        let mut backoff = Backoff::default();
        let (mut stored, mut was_away) = (HashSet::new(), false);
        while let Err(error) = self.try_publish(messages, &mut stored).await {
            if !was_away {
                tracing::warn!(%error, "publishing events in the cluster failed: they wait in the journal");
            }
            was_away = true;
            self.link.forget_resources();
            backoff.wait().await;
        }
        self.state.servers_answered();
        if was_away {
            tracing::info!("events are published in the cluster again");
        }
    }

    /// Adds the position of reactions that ran during an outage of the servers, so that no other member repeats them.
    fn with_handled(&self, message: &Message) -> Message {
        let mut message = message.clone();
        let handled = self.state.handled_in_isolation();
        if message.items.first().is_some_and(|first| first.seq <= handled) {
            message.handled.push((self.state.member().to_owned(), handled));
        }
        message
    }

    async fn try_publish(&self, messages: &[Message], stored: &mut HashSet<usize>) -> Result<(), LinkError> {
        self.link.resources().await?;
        let subject = self.link.subject(self.state.member());
        let mut waiting = Vec::new();
        for (at, message) in messages.iter().enumerate().filter(|(at, _)| !stored.contains(at)).collect::<Vec<_>>() {
            let mut headers = HeaderMap::new();
            if let Some(first) = message.items.first() {
                let part = message.part.map_or(0, |(part, _)| part);
                // A message that a client kept during an outage is stored before its repetition. A new member may refuse
                // it for its age, so the servers must not drop the repetition as a duplicate.
                let period = self.link.clock.now().as_secs() / (MAX_DELAY.as_secs() / 2);
                let count = message.items.len();
                let id = format!("{subject} {} {} {part} {count} {period}", message.incarnation, first.seq);
                headers.insert(NATS_MESSAGE_ID, id.as_str());
            }
            let sealed = self.link.seal(&subject, &self.with_handled(message).pack());
            let publish = self.link.context().publish_with_headers(subject.clone(), headers, sealed);
            waiting.push((at, publish.await.map_err(nats)?));
        }
        for (at, acknowledged) in waiting {
            acknowledged.await.map_err(nats)?;
            stored.insert(at);
        }
        Ok(())
    }
}
