//! Publishes the events of other members on the local bus, each once and in the order of its member.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use brine_bus::{Bus, BusError};
use brine_event::{Event, MASKED};
use brine_runtime::backoff::Backoff;
use brine_value::{Map, Value, msgpack};
use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::server_time;
use crate::error::{LinkError, nats};
use crate::large::{is_large, is_outage, return_name, return_of};
use crate::link::{Link, name_of};
use crate::message::{Item, Message, Parts};
use crate::positions::Incarnation;
use crate::shared::Shared;
use crate::state::State;
use crate::tables::SyncHandle;
use crate::{Local, SEALED, is_publish, metrics};

/// The pause before a retry when the local bus cannot accept an event.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The time without a message after which the server is asked for its last message number.
const STALL_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of retries if the server reports fewer messages than were already read.
const RETRIES: usize = 3;

/// The receiving side of a member.
pub(crate) struct Receiver {
    pub link: Arc<Link>,
    pub state: Arc<State>,
    pub bus: Bus,
    pub sync_handle: Arc<SyncHandle>,
    pub local: Arc<dyn Local>,
    pub shared: Arc<Shared>,
}

impl Receiver {
    /// Receives events until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        tokio::select! {
            () = self.follow() => {}
            () = shutdown.cancelled() => {}
        }
    }

    async fn follow(&self) {
        let (mut backoff, mut was_away) = (Backoff::default(), false);
        loop {
            if let Err(error) = Box::pin(self.receive(&mut backoff)).await {
                if !was_away {
                    tracing::warn!(%error, "receiving events of the cluster failed: retrying");
                }
                was_away = true;
                self.link.forget_resources();
            }
            backoff.wait().await;
        }
    }

    /// Receives events until the connection fails.
    async fn receive(&self, backoff: &mut Backoff) -> Result<(), LinkError> {
        let resources = self.link.resources().await?;
        let mut position = self.state.stream_position();
        let last = self.last_event(position).await?;
        if last < position {
            tracing::warn!(position, last, "the servers have lost events: reading the stream from the start");
            position = 0;
            self.state.reached(position);
        }
        let deliver_policy = DeliverPolicy::ByStartSequence { start_sequence: position + 1 };
        let config = OrderedConfig { deliver_policy, ..OrderedConfig::default() };
        let consumer = resources.events.create_consumer(config).await.map_err(nats)?;
        let messages = consumer.messages().await.map_err(nats)?;
        let (reached, positions) = watch::channel(position);
        tokio::select! {
            ended = self.read(messages, position, reached, backoff) => ended,
            () = self.store_positions(positions) => Ok(()),
        }
    }

    /// Returns the number of the last message of the stream. A server that has just started may report a stale number,
    /// so it is asked again before the whole stream is read anew.
    async fn last_event(&self, position: u64) -> Result<u64, LinkError> {
        let mut last = self.link.last_event().await?;
        for _ in 0..RETRIES {
            if last >= position {
                break;
            }
            tokio::time::sleep(STALL_TIMEOUT).await;
            last = self.link.last_event().await?;
        }
        Ok(last)
    }

    /// Publishes the events of the stream's messages on the local bus, and sends the number of each message to
    /// `reached`.
    async fn read(
        &self,
        mut messages: Ordered,
        position: u64,
        reached: watch::Sender<u64>,
        backoff: &mut Backoff,
    ) -> Result<(), LinkError> {
        let mut parts: HashMap<String, Parts> = HashMap::new();
        let (mut seen, mut is_other) = (position, false);
        loop {
            let Ok(message) = tokio::time::timeout(STALL_TIMEOUT, messages.next()).await else {
                // The consumer of a failed server stays silent for a long time.
                let was_other = std::mem::replace(&mut is_other, self.link.last_event().await? != seen);
                if was_other && is_other {
                    return Err(nats("the server sends nothing, though it has other events"));
                }
                continue;
            };
            let Some(message) = message else { return Ok(()) };
            let message = message.map_err(nats)?;
            let info = message.info().map_err(nats)?;
            let (number, stored) = (info.stream_sequence, server_time(info.published.unix_timestamp_nanos()));
            (seen, is_other) = (number, false);
            backoff.reset();
            self.apply(message.subject.as_str(), &message.payload, (number, stored), &mut parts).await;
            // An event in parts is read again from its first part after a restart.
            let incomplete = parts.values().filter_map(Parts::incomplete).min();
            reached.send_replace(incomplete.map_or(number, |first| first.saturating_sub(1)));
        }
    }

    /// Stores the position in the stream whenever the journal has persisted the events up to it. Messages that arrive
    /// meanwhile share the next write, so that no message waits for the disk.
    async fn store_positions(&self, mut reached: watch::Receiver<u64>) {
        while reached.changed().await.is_ok() {
            let number = *reached.borrow_and_update();
            let row = self.state.reached(number);
            // The stored row may include events that have arrived since.
            if let Err(error) = self.bus.persisted(self.bus.last_seq()).await {
                tracing::error!(%error, "writing events of the cluster to the journal failed");
            }
            if let Err(error) = self.state.store_positions(row).await {
                tracing::error!(%error, "storing the position in the cluster's events failed: they are read again after a restart");
            }
        }
    }

    /// Publishes the events of a message on the local bus. The stream has it as `number`, since the time `stored`.
    async fn apply(
        &self,
        subject: &str,
        payload: &Bytes,
        (number, stored): (u64, Duration),
        parts: &mut HashMap<String, Parts>,
    ) {
        let member = subject.rsplit('.').next().and_then(name_of).and_then(|name| String::from_utf8(name).ok());
        let Some(member) = member.filter(|member| member != self.state.member()) else { return };
        let opened = self.link.open_any(subject, payload).ok();
        let opened = opened.and_then(|opened| Some((opened.stamp, Message::unpack(&opened.plain)?)));
        let Some((stamp, mut message)) = opened else {
            metrics::EVENTS_LOST.add(1);
            return tracing::error!(
                member,
                "a message of the cluster cannot be decrypted: the masters of a cluster need the same secret"
            );
        };
        let is_late = stamp.is_late(stored);
        match self.state.with_positions(|positions| positions.note_incarnation(&member, &message.incarnation, is_late))
        {
            Incarnation::Current => {}
            Incarnation::New => {
                tracing::warn!(member, "a member of the cluster has a new store: its events are numbered anew");
            }
            Incarnation::Refused => {
                metrics::VALUES_REFUSED.add(1);
                return tracing::error!(member, "an old message of the cluster was stored again: it is refused");
            }
        }
        // The reported positions are recorded first: they may cover the events of this message.
        self.state.with_positions(|positions| positions.handled_elsewhere(&message.handled));
        // Repeated ones are dropped first, so that they do not interrupt an event in parts.
        message.items.retain(|item| self.state.with_positions(|positions| positions.is_new(&member, item.seq)));
        let items = parts.entry(member.clone()).or_default().reassemble(number, message.items, message.part);
        // Nobody but the sender decides when a job is too old to be published.
        let age = self.link.clock.now().saturating_sub(stamp.sent);
        for item in items {
            self.publish(&member, item, age).await;
        }
    }

    /// Publishes an event on the local bus.
    async fn publish(&self, member: &str, item: Item, age: Duration) {
        if !self.state.with_positions(|positions| positions.is_new(member, item.seq)) {
            return;
        }
        let cause = item.cause.as_ref().and_then(|position| {
            self.state.with_positions(|positions| positions.number(self.state.member(), position))
        });
        let is_stored = self.store_large(member, &item).await;
        let item = self.store_sealed(item).await;
        let event = match local_copy(member, &item, cause, is_stored) {
            Ok(event) => event,
            Err(error) => {
                metrics::EVENTS_LOST.add(1);
                tracing::error!(member, seq = item.seq, %error, "event of the cluster refused");
                return;
            }
        };
        self.prepare(&event).await;
        let number = loop {
            match self.bus.fire_event(event.clone()).await {
                Ok(number) => break number,
                Err(error @ (BusError::Event(_) | BusError::TooLarge { .. })) => {
                    metrics::EVENTS_LOST.add(1);
                    tracing::error!(member, seq = item.seq, %error, "event of the cluster refused");
                    return;
                }
                Err(BusError::Closed) => return,
                // The disk is full: retry, as the stream keeps the event.
                Err(_) => tokio::time::sleep(RETRY_INTERVAL).await,
            }
        };
        self.state.with_positions(|positions| positions.received(member, item.seq, number));
        metrics::EVENTS_RECEIVED.add(1);
        self.apply_locally(&event, number, age).await;
    }

    /// Stores the whole return that a trimmed return event refers to. Returns `false` if it is not available, so that
    /// the job cache stores the trimmed one.
    async fn store_large(&self, member: &str, item: &Item) -> bool {
        let Ok(event) = Event::from_frame(item.frame.clone()) else { return true };
        if !is_large(&event) {
            return true;
        }
        let Some((jid, id)) = return_of(&event) else { return true };
        let whole = loop {
            match self.shared.get_large(jid, &return_name(member, id)).await {
                Ok(whole) => break whole,
                Err(error) if is_outage(&error) => tokio::time::sleep(RETRY_INTERVAL).await,
                Err(_) => break None,
            }
        };
        let is_stored = match whole {
            Some(whole) => self.local.store_large_return(jid, id, whole).await,
            None => false,
        };
        if !is_stored {
            tracing::warn!(jid, minion = id, "a large return of another master is stored trimmed");
        }
        is_stored
    }

    /// Stores the masked arguments of a publish, and removes them from its event.
    async fn store_sealed(&self, item: Item) -> Item {
        let Ok(event) = Event::from_frame(item.frame.clone()) else { return item };
        if !is_publish(&event) {
            return item;
        }
        let Ok(mut body) = msgpack::unpack_map(event.body()) else { return item };
        let Some(arguments) = body.shift_remove(SEALED) else { return item };
        if let (Some(reference), Some(arguments)) = (body.get(MASKED).and_then(Value::as_str), arguments.as_bytes()) {
            self.local.store_sealed(reference, arguments.to_vec()).await;
        }
        match Event::from_map(event.tag(), &body) {
            Ok(event) => Item { frame: event.frame().clone(), ..item },
            // It was a valid event with more fields.
            Err(_) => item,
        }
    }

    /// Fetches the minion's key that an event concerns: reactions to the event may need it.
    async fn prepare(&self, event: &Event) {
        if matches!(event.tag(), "salt/auth" | "salt/key")
            && let Some(id) = event.data().get("id").and_then(|id| id.as_str().map(str::to_owned))
        {
            self.sync_handle.pull_file(&id).await;
        }
    }

    /// Applies an event of another member to this master: publishes its jobs to the local minions.
    async fn apply_locally(&self, event: &Event, number: u64, age: Duration) {
        if !event.tag().starts_with("salt/job/") {
            return;
        }
        self.local.job_published(number);
        if !is_publish(event) {
            return;
        }
        if age > self.link.settings.catch_up {
            return tracing::debug!(tag = event.tag(), "a job of another member is too old to be published");
        }
        let mut load: Map = event.data();
        load.retain(|name, _| !name.as_str().is_some_and(|name| name.starts_with('_') && name != MASKED));
        if let Err(error) = self.local.publish(load).await {
            tracing::error!(tag = event.tag(), %error, "publishing a job of another member failed");
        }
    }
}

/// Returns the event as it is published on this bus: `_cause` becomes the local sequence number of the cause or is
/// removed if that is unknown, and the job cache stores the trimmed return unless the whole one `is_stored`.
fn local_copy(
    member: &str,
    item: &Item,
    cause: Option<u64>,
    is_stored: bool,
) -> Result<Event, brine_event::EventError> {
    if item.cause.is_none() && is_stored {
        return Event::from_member(item.frame.clone(), member, item.seq);
    }
    let event = Event::from_frame(item.frame.clone())?;
    let mut body = msgpack::unpack_map(event.body())?;
    match cause {
        Some(cause) => _ = body.insert("_cause".into(), cause.into()),
        None if item.cause.is_some() => _ = body.shift_remove("_cause"),
        None => {}
    }
    if !is_stored {
        body.shift_remove(crate::NOT_CACHED.0);
    }
    Event::from_member(Event::from_map(event.tag(), &body)?.frame().clone(), member, item.seq)
}

#[cfg(test)]
mod tests {
    use brine_value::{FromValue, map};

    use super::*;

    #[test]
    fn causes_become_local_sequence_numbers() {
        let body = map! {"_cause" => 7, "a" => 1, "_from" => "web1"};
        let frame = Event::from_map("t", &body).unwrap().frame().clone();
        let item = |cause| Item { seq: 9, frame: frame.clone(), cause };
        let published = |item: &Item, cause| {
            let event = local_copy("m2", item, cause, true).unwrap().stamped(1, "now").unwrap();
            let data = event.data();
            (event.origin(), data.get("_cause").and_then(u64::from_value), data.get("_from").cloned())
        };
        let origin = Some(("m2".to_owned(), 9));
        let from = Some("web1".into());
        assert_eq!(published(&item(Some(("m3".into(), 7))), Some(40)), (origin.clone(), Some(40), from.clone()));
        assert_eq!(published(&item(Some(("m3".into(), 7))), None), (origin.clone(), None, from.clone()));
        assert_eq!(published(&item(None), None), (origin, Some(7), from));
    }

    #[test]
    fn the_trimmed_return_is_cached_if_the_whole_one_is_missing() {
        let body = map! {"_nocache" => "large", "return" => "x", "_cause" => 7};
        let frame = Event::from_map("salt/job/1/ret/a", &body).unwrap().frame().clone();
        let item = Item { seq: 9, frame, cause: None };
        for (is_stored, expected) in [(true, Some("large".into())), (false, None)] {
            let data = local_copy("m2", &item, None, is_stored).unwrap().stamped(1, "now").unwrap().data();
            assert_eq!((data.get("_nocache").cloned(), data.get("_cause")), (expected, Some(&7.into())));
        }
    }
}
