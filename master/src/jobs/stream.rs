//! The publish stream: encrypts and signs loads, and publishes them to minions in the order of their serial numbers.

use std::sync::Arc;

use brine_config::MasterConfig;
#[cfg(feature = "cluster")]
use brine_crypt::Session;
use brine_crypt::{Cipher, CryptError, SignatureAlgorithm};
use brine_ids::Jid;
use brine_runtime::executors::Executor;
use brine_value::{Map, Value, map, msgpack};
use brine_wire::{TOPIC_BROADCAST, TOPIC_GCM, TOPIC_SYNDIC, minion_topic, purpose};
use brine_zmtp::Publisher;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::admission::identity::Identity;
use crate::admission::sessions::{PublishKeys, Sessions};
use crate::events::Events;

/// The publish stream of a master.
pub(crate) struct PublishStream {
    config: Arc<MasterConfig>,
    /// The allowed ciphers.
    ciphers: Arc<[Cipher]>,
    identity: Arc<Identity>,
    sessions: Arc<Sessions>,
    publisher: Publisher,
    crypto: Executor,
    events: Events,
    /// Closes when the last load is published.
    last: Mutex<Option<oneshot::Receiver<()>>>,
}

impl PublishStream {
    /// Creates the stream of a publisher.
    pub fn new(
        config: Arc<MasterConfig>,
        ciphers: Arc<[Cipher]>,
        (identity, sessions): (Arc<Identity>, Arc<Sessions>),
        publisher: Publisher,
        crypto: Executor,
        events: Events,
    ) -> Self {
        PublishStream { config, ciphers, identity, sessions, publisher, crypto, events, last: Mutex::default() }
    }

    /// Publishes a load to these minions.
    pub async fn publish(self: &Arc<Self>, load: Map, minions: Vec<String>) -> Result<(), String> {
        // A minion without a session may use any cipher: it decrypts the load once it has authenticated.
        let all_known = self.sessions.knows_all(&minions);
        let ciphers = if all_known { self.sessions.ciphers_in_use() } else { self.ciphers.to_vec() };
        self.send(load, ciphers, minions).await
    }

    /// Replaces the publish keys, and publishes a notice that only the new keys decrypt: minions then authenticate at once,
    /// and not with the next job, which they would miss.
    pub async fn rotate_keys(self: &Arc<Self>) {
        self.sessions.rotate();
        self.events.fire("key", &map! {"rotate_aes_key" => true}).await;
        self.notify_of_keys().await;
    }

    /// Replaces the publish keys by those of the cluster, with the same notice.
    #[cfg(feature = "cluster")]
    pub async fn adopt_keys(self: &Arc<Self>, cbc: Session, gcm: Session) {
        if self.sessions.adopt(cbc, gcm) {
            self.notify_of_keys().await;
        }
    }

    async fn notify_of_keys(self: &Arc<Self>) {
        let notice = map! {"jid" => &Jid::new(), "fun" => "test.ping", "arg" => Vec::<Value>::new(), "tgt" => Vec::<Value>::new(), "tgt_type" => "list"};
        if let Err(error) = self.send(notice, self.ciphers.to_vec(), Vec::new()).await {
            tracing::error!(error, "publishing the notice of new keys failed");
        }
    }

    /// Encrypts a load once for each cipher and publishes it to these minions, or to all if the list is empty; only
    /// minions that filter publishes are addressed individually. Loads encrypted in parallel are published in the order
    /// of their serial numbers: Salt's minions refuse a serial number below the last one.
    async fn send(self: &Arc<Self>, mut load: Map, ciphers: Vec<Cipher>, minions: Vec<String>) -> Result<(), String> {
        let (_published, own) = oneshot::channel::<()>();
        let (serial, previous) = {
            let mut last = self.last.lock();
            (self.sessions.next_serial(), last.replace(own))
        };
        load.insert("serial".into(), serial.into());
        let stream = Arc::clone(self);
        let encrypted = self.crypto.run(move |_| {
            let topics = stream.topics(&load, &minions);
            let (keys, load) = (stream.sessions.publish_keys(), msgpack::pack_map(&load));
            let encrypt = |cipher| Ok((cipher, stream.encrypt(cipher, &keys, &load)?));
            let payloads: Result<Vec<_>, CryptError> = ciphers.into_iter().map(encrypt).collect();
            payloads.map(|payloads| (topics, payloads))
        });
        let encrypted = encrypted.await;
        if let Some(previous) = previous {
            // Its sender is dropped when the previous load is published, or has failed.
            _ = previous.await;
        }
        let (topics, payloads) = encrypted.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        for (cipher, payload) in payloads {
            match cipher {
                Cipher::AesCbcHmac => self.publisher.publish_under(topics.clone(), &payload),
                // Brine's minions subscribe to this topic by name.
                Cipher::Aes256Gcm => self.publisher.publish_by_name(&[Bytes::from_static(TOPIC_GCM), payload]),
            };
        }
        Ok(())
    }

    /// Returns the topics of a load for minions that filter publishes. As in Salt, targets of other kinds are matched by the
    /// minions, which all get the load.
    fn topics(&self, load: &Map, minions: &[String]) -> Vec<Bytes> {
        let matched_here = matches!(load.get("tgt_type").and_then(Value::as_str), Some("glob" | "pcre" | "list"));
        if !self.config.zmq_filtering || !matched_here || minions.is_empty() {
            return vec![Bytes::from_static(TOPIC_BROADCAST)];
        }
        let syndic = self.config.order_masters.then_some(Bytes::from_static(TOPIC_SYNDIC));
        minions.iter().map(|id| Bytes::from(minion_topic(id))).chain(syndic).collect()
    }

    fn encrypt(&self, cipher: Cipher, keys: &PublishKeys, load: &[u8]) -> Result<Bytes, CryptError> {
        let sealed = keys.of(cipher).seal(load, None, purpose::PUBLISH);
        let mut envelope = map! {"enc" => "aes"};
        // Every minion has the key of the stream, and could forge unsigned publishes.
        if self.config.sign_pub_messages || cipher == Cipher::Aes256Gcm {
            let algorithm = SignatureAlgorithm::default();
            envelope.insert("sig_algo".into(), algorithm.name().into());
            envelope.insert("sig".into(), self.identity.private_key.sign(&sealed, algorithm)?.into());
        }
        envelope.insert("load".into(), sealed.into());
        Ok(Bytes::from(msgpack::pack_map(&envelope)))
    }
}
