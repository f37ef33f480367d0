//! The publish stream of a session: subscribes, decrypts and verifies jobs.

use std::sync::Arc;
use std::time::Duration;

use brine_crypt::Cipher;
use brine_value::{Map, Value, map, msgpack};
use brine_wire::{Publication, TOPIC_BROADCAST, TOPIC_GCM, TOPIC_SYNDIC, WireError, minion_topic, purpose};
use brine_zmtp::{Subscriber, TransportError};
use bytes::Bytes;

use super::{Channel, ChannelError, source};

/// The length of the topic of a minion: a digest in hexadecimal.
const TOPIC_LENGTH: usize = 40;

/// The error of a publish.
#[derive(Debug)]
pub enum OpenError<E> {
    /// The authentication failed.
    Join(E),
    /// The publish is refused.
    Refused(ChannelError),
    /// The publish was damaged on its way.
    Broken(ChannelError),
}

/// A connection to the master's publish port.
pub struct Publishes {
    subscriber: Subscriber,
    /// The topics of publishes for this minion.
    topics: Vec<Vec<u8>>,
    /// Whether publishes for other minions arrive as well.
    receives_all: bool,
}

impl Publishes {
    /// Returns the payload of the next publish for this minion or for all. Cancel safe.
    pub async fn recv(&mut self) -> Result<Bytes, TransportError> {
        loop {
            let frames = self.subscriber.recv().await?;
            match &frames[..] {
                [payload] => return Ok(payload.clone()),
                [topic, payload] if self.topics.iter().any(|own| own == topic) => return Ok(payload.clone()),
                // A master with `zmq_filtering` sends a publish once for each of its minions, and a minion that does
                // not filter receives all of them.
                [topic, _] if self.receives_all && is_of_others(topic) => {
                    tracing::trace!("a publish for other minions is left out");
                }
                _ => return Err(TransportError::Malformed("a publish has a topic that was not subscribed to")),
            }
        }
    }
}

/// Whether a topic is one of another minion, or of syndics.
fn is_of_others(topic: &[u8]) -> bool {
    topic == TOPIC_SYNDIC || topic.len() == TOPIC_LENGTH && topic.iter().all(u8::is_ascii_hexdigit)
}

impl Channel {
    /// Connects to the publish port of the session; `None` without a session.
    pub async fn subscribe(&self) -> Result<Option<Publishes>, TransportError> {
        let Some(endpoint) = self.publish_endpoint() else { return Ok(None) };
        let [gcm, broadcast, own] =
            [TOPIC_GCM.to_vec(), TOPIC_BROADCAST.to_vec(), minion_topic(self.id.as_str()).into_bytes()];
        let prefixes = match self.cipher() {
            Some(Cipher::Aes256Gcm) => vec![gcm.clone()],
            _ if self.config.zmq_filtering => {
                [broadcast.clone(), own.clone()].into_iter().chain(self.syndic_topic.map(<[u8]>::to_vec)).collect()
            }
            _ => vec![Vec::new()],
        };
        let source = source::source_address(&self.config, self.config.source_publish_port);
        let limits = super::limits(&self.config, source);
        let subscriber = match self.identification() {
            Some(message) => Subscriber::identify(&endpoint, &message, limits).await?,
            None => Subscriber::connect(&endpoint, &prefixes, limits).await?,
        };
        let topics = [gcm, broadcast, own].into_iter().chain(self.syndic_topic.map(<[u8]>::to_vec)).collect();
        Ok(Some(Publishes { subscriber, topics, receives_all: prefixes == [Vec::<u8>::new()] }))
    }

    /// Returns the message by which a Salt master with `transport: tcp` recognises the minion: such a master sends
    /// publishes for a glob, a list or a regular expression only to the minions that match. `None` if it is not needed.
    fn identification(&self) -> Option<Bytes> {
        let keys = self.keys.read().clone().filter(|keys| self.config.transport.is_tcp() && !keys.is_brine)?;
        let token = keys.token.as_ref()?;
        let load = msgpack::pack_map(&map! {"id" => &self.id, "tok" => token.clone()});
        let load = keys.publish.seal(&load, None, purpose::PUBLISH);
        Some(msgpack::pack_map(&map! {"enc" => "aes", "load" => load, "version" => 3}).into())
    }

    /// Decrypts like [`Channel::open_publish`], on an executor.
    pub async fn open(self: &Arc<Self>, payload: Bytes) -> Result<Publication, ChannelError> {
        let this = Arc::clone(self);
        self.crypto.run(move |_| this.open_publish(&payload)).await?
    }

    /// Decrypts a publish like [`Channel::open`], after another authentication by `join` if the master has new keys.
    ///
    /// # Errors
    /// [`OpenError::Refused`] for a publish that does not matter, such as a replay. [`OpenError::Broken`] for one that
    /// the master has sent otherwise, with which a job was lost.
    pub async fn open_or_join<E>(
        self: &Arc<Self>,
        payload: Bytes,
        join: impl Future<Output = Result<(), E>>,
    ) -> Result<Publication, OpenError<E>> {
        let mut opened = self.open(payload.clone()).await;
        if let Err(ChannelError::Crypt(error)) = &opened {
            // The master has new keys. A random delay keeps all minions from authenticating at once.
            tracing::info!(%error, "decrypting a publish failed: authenticating again");
            tokio::time::sleep(Duration::from_millis(rand::random_range(0..50))).await;
            join.await.map_err(OpenError::Join)?;
            // The publish with the new keys may itself be a job.
            opened = self.open(payload).await;
        }
        opened.map_err(|error| {
            brine_wire::metrics::REQUESTS_REFUSED.add(1);
            match error {
                ChannelError::Crypt(_) | ChannelError::Wire(_) => OpenError::Broken(error),
                ChannelError::UnsignedPublish if self.cipher() == Some(Cipher::Aes256Gcm) => OpenError::Broken(error),
                error => OpenError::Refused(error),
            }
        })
    }

    /// Decrypts and verifies the payload of a publish.
    pub fn open_publish(&self, payload: &[u8]) -> Result<Publication, ChannelError> {
        let keys = self.keys.read().clone().ok_or(ChannelError::Refused)?;
        let envelope: Map = msgpack::unpack_map(payload).map_err(WireError::from)?;
        let load = envelope.get("load").and_then(Value::as_bytes).ok_or(WireError::Missing("load"))?;
        let plain = keys.publish.open(load, None, purpose::PUBLISH)?;
        match envelope.get("sig").and_then(Value::as_bytes) {
            Some(sig) => {
                let algorithm = envelope.get("sig_algo").and_then(Value::as_str).unwrap_or_default().parse()?;
                keys.master.verify(load, sig, algorithm)?;
            }
            // Every minion holds the key of the publish stream: only a signature proves that the master is the sender.
            None if keys.publish.cipher() == Cipher::Aes256Gcm || self.config.sign_pub_messages => {
                return Err(ChannelError::UnsignedPublish);
            }
            None => {}
        }
        let publication = Publication::from_map(msgpack::unpack_map(&plain).map_err(WireError::from)?)?;
        let numbered = publication.load.contains_key("serial") || keys.publish.cipher() == Cipher::Aes256Gcm;
        let is_new = |serial| self.seen.lock().is_new(serial);
        if numbered && !u64::try_from(publication.serial).is_ok_and(is_new) {
            return Err(ChannelError::Replay);
        }
        Ok(publication)
    }
}
