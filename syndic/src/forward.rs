//! Sends the returns and events of the local bus to an upstream master, in order, with retries until it has stored
//! them.

use std::sync::Arc;
use std::time::Duration;

use brine_client::{ClientError, Events, MasterClient};
use brine_event::Event;
use brine_runtime::backoff::Backoff;
use brine_runtime::executors::Executor;
use brine_value::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::bundle::{Item, Loads, MinionReturn, events_load, item, returns_load, seq};
use crate::metrics;
use crate::settings::Settings;
use crate::upstream_master::UpstreamMaster;

/// The limits of one message: the number of events, and their total size in bytes.
const MAX_EVENTS: usize = 500;
const MAX_BYTES: usize = 1 << 20;
/// The time without an event after which a message is complete.
const LINGER: Duration = Duration::from_millis(2);

/// Forwards the local bus to one upstream master.
pub(crate) struct Forwarder {
    pub upstream: Arc<UpstreamMaster>,
    /// All upstream masters, in the order of the configuration.
    pub all: Vec<Arc<UpstreamMaster>>,
    pub client: Arc<MasterClient>,
    pub settings: Arc<Settings>,
    pub disk: Executor,
}

impl Forwarder {
    /// Forwards events until `stopping`.
    pub async fn run(self, stopping: CancellationToken) {
        tokio::select! {
            () = self.follow() => {}
            () = stopping.cancelled() => {}
        }
    }

    async fn follow(&self) {
        let mut backoff = Backoff::default();
        loop {
            if let Err(error) = self.read(&mut backoff).await {
                tracing::warn!(%error, "connecting to the event bus of the local master failed: retrying");
            }
            backoff.wait().await;
        }
    }

    /// Forwards events until the connection to the local bus is lost.
    async fn read(&self, backoff: &mut Backoff) -> Result<(), ClientError> {
        let mut expected = self.upstream.position.last().map(|last| last + 1);
        let mut events = self.client.events_since(&[""], expected).await?;
        let mut loads = Loads::default();
        loop {
            let batch = next_batch(&mut events).await?;
            backoff.reset();
            let (first, last) = (batch.first().and_then(seq), batch.last().and_then(seq));
            if let (Some(expected), Some(first)) = (expected, first)
                && first > expected
            {
                // Numbers are also skipped after an unclean stop of the master: not every gap is a loss.
                tracing::warn!(expected, first, "events of the local bus are missing from its journal");
            }
            self.send(batch, &mut loads).await;
            let Some(last) = last else { continue };
            expected = Some(last + 1);
            let upstream = Arc::clone(&self.upstream);
            if let Err(error) = self.disk.run(move |_| upstream.position.advance(last)).await {
                tracing::error!(%error, "storing the position of forwarded events failed");
            }
        }
    }

    /// Sends the items of a batch that this upstream master should receive: first events, which announce jobs, then
    /// returns.
    async fn send(&self, batch: Vec<Event>, loads: &mut Loads) {
        let own = self.settings.master.master_id.as_deref();
        let (mut events, mut returns) = (Vec::new(), Vec::new());
        for event in &batch {
            match item(event, self.settings.mode, own) {
                Some(Item::Return(one)) if self.is_for_this(&one) => returns.push(*one),
                Some(Item::Event(tag, data)) => {
                    let one = Item::Event(tag, data);
                    loads.record(&one);
                    if let Item::Event(tag, data) = one {
                        events.push((tag, data));
                    }
                }
                _ => {}
            }
        }
        let id = self.settings.id.as_str();
        let counts = (events.len() as u64, returns.len() as u64);
        if !events.is_empty() {
            self.deliver(events_load(id, events)).await;
            metrics::EVENTS.add(counts.0);
        }
        if !returns.is_empty() {
            self.deliver(returns_load(id, returns, loads)).await;
            metrics::RETURNS.add(counts.1);
        }
    }

    /// Whether this upstream master receives a return: it published the job, or the job was started locally. While the
    /// publisher of the job is away, the first connected master receives the return as well.
    fn is_for_this(&self, one: &MinionReturn) -> bool {
        if self.upstream.has_sent(&one.jid) {
            return true;
        }
        match self.all.iter().find(|other| other.has_sent(&one.jid)) {
            None => true,
            Some(publisher) if publisher.is_ready() => false,
            Some(_) => {
                self.all.iter().find(|other| other.is_ready()).is_some_and(|first| Arc::ptr_eq(first, &self.upstream))
            }
        }
    }

    /// Sends a message, with retries, until the upstream master has accepted it.
    async fn deliver(&self, load: Map) {
        let mut ready = self.upstream.ready.subscribe();
        let mut backoff = Backoff::default();
        loop {
            // The sender lives in `upstream`, so the channel is never closed.
            _ = ready.wait_for(|is_ready| *is_ready).await;
            match self.upstream.channel.request(load.clone()).await {
                // Salt's masters return nothing.
                Ok(Value::Bool(true) | Value::Nil) => return,
                Ok(Value::Bool(false)) => tracing::warn!(
                    master = %self.upstream.address,
                    "the upstream master did not store events or returns: retrying; set order_masters in its configuration"
                ),
                Ok(answer) => {
                    metrics::EVENTS_LOST.add(1);
                    tracing::error!(master = %self.upstream.address, %answer, "the upstream master refuses events or returns");
                    return;
                }
                Err(error) => {
                    tracing::warn!(master = %self.upstream.address, %error, "sending events or returns failed: retrying");
                }
            }
            backoff.wait().await;
        }
    }
}

/// Returns the next events: at least one, and those that follow without a pause of [`LINGER`], up to the limits of a
/// message.
async fn next_batch(events: &mut Events) -> Result<Vec<Event>, ClientError> {
    let first = events.next().await?;
    let mut bytes = first.frame().len();
    let mut batch = vec![first];
    while batch.len() < MAX_EVENTS && bytes < MAX_BYTES {
        // The next call returns the error again; the events received so far are sent first.
        let Ok(Ok(event)) = tokio::time::timeout(LINGER, events.next()).await else { break };
        bytes += event.frame().len();
        batch.push(event);
    }
    Ok(batch)
}
