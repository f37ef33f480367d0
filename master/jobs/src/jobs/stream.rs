//! The publish stream: encrypts and signs loads, and publishes them to minions in the order of their serial numbers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_config::MasterConfig;
use brine_crypt::{Cipher, CryptError, SignatureAlgorithm};
use brine_ids::Jid;
use brine_master_access::admission::identity::Identity;
use brine_master_access::admission::publish_keys::PublishKeys;
use brine_master_access::admission::sessions::Sessions;
use brine_master_store::events::Events;
use brine_runtime::executors::Executor;
use brine_value::{Map, Value, map, msgpack};
use brine_wire::{TOPIC_BROADCAST, TOPIC_GCM, TOPIC_SYNDIC, minion_topic, purpose};
use brine_zmtp::Publisher;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The minimum time between two rotations of the keys. All minions authenticate again after each rotation; a program
/// that deletes a thousand keys one by one must not cause a thousand of them.
const MIN_ROTATION_INTERVAL: Duration = Duration::from_secs(10);

/// Schedules rotations of the publish keys.
#[derive(Debug, Default)]
struct Rotations {
    last: Option<Instant>,
    /// Whether another rotation has been requested since.
    is_due: bool,
}

impl Rotations {
    /// Requests a rotation. Returns whether it takes place now; otherwise it becomes due later.
    fn request(&mut self, now: Instant) -> bool {
        self.is_due = true;
        self.take_due(now)
    }

    /// Whether a requested rotation takes place now.
    fn take_due(&mut self, now: Instant) -> bool {
        let is_soon = self.last.is_some_and(|last| now.saturating_duration_since(last) < MIN_ROTATION_INTERVAL);
        if is_soon || !std::mem::take(&mut self.is_due) {
            return false;
        }
        self.last = Some(now);
        true
    }
}

/// A load without its serial number, encoded.
#[derive(Debug, Clone)]
pub(super) struct PackedLoad {
    packed: Bytes,
    /// Whether the master knows the minions of the target as well as they do themselves.
    is_matched_here: bool,
}

impl PackedLoad {
    /// Encodes a load.
    pub fn new(load: &Map) -> Self {
        Self::of(load, msgpack::pack_map(load).into())
    }

    /// Returns a load with its encoding.
    pub fn of(load: &Map, packed: Bytes) -> Self {
        let kind = load.get("tgt_type").and_then(Value::as_str);
        PackedLoad { packed, is_matched_here: matches!(kind, Some("glob" | "pcre" | "list")) }
    }

    /// Returns the encoding.
    pub fn bytes(&self) -> &Bytes {
        &self.packed
    }

    /// Returns the load with its serial number, encoded.
    fn with_serial(&self, serial: u64) -> Result<Vec<u8>, msgpack::UnpackError> {
        let (count, header) = msgpack::scan(&self.packed, |_| ())?;
        let mut load = Vec::with_capacity(self.packed.len() + 24);
        msgpack::pack_map_len(&mut load, count as usize + 1);
        load.extend_from_slice(&self.packed[header..]);
        msgpack::pack_into(&mut load, &"serial".into());
        msgpack::pack_into(&mut load, &serial.into());
        Ok(load)
    }
}

/// The publish stream of a master.
pub struct PublishStream {
    config: Arc<MasterConfig>,
    /// The allowed ciphers.
    ciphers: Arc<[Cipher]>,
    identity: Arc<Identity>,
    sessions: Arc<Sessions>,
    publisher: Publisher,
    crypto: Executor,
    events: Events,
    rotations: Mutex<Rotations>,
    /// Closes when the previous load has been published, which serializes publishes.
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
        let (rotations, last) = (Mutex::default(), Mutex::default());
        PublishStream { config, ciphers, identity, sessions, publisher, crypto, events, rotations, last }
    }

    /// Publishes a load to these minions.
    pub(super) async fn publish(self: &Arc<Self>, load: PackedLoad, minions: Vec<String>) -> Result<(), String> {
        // A minion without a session may use any cipher: it decrypts the load once it has authenticated.
        let all_known = self.sessions.knows_all(&minions);
        let ciphers = if all_known { self.sessions.ciphers_in_use() } else { self.ciphers.to_vec() };
        self.send(load, ciphers, minions).await
    }

    /// Rotates the publish keys: now, or, if that was done recently, later through
    /// [`rotate_if_due`](Self::rotate_if_due).
    pub async fn rotate_keys(self: &Arc<Self>) {
        let is_now = self.rotations.lock().request(Instant::now());
        if is_now {
            self.rotate_now().await;
        }
    }

    /// Rotates the publish keys if a rotation was postponed. Returns whether it did.
    pub async fn rotate_if_due(self: &Arc<Self>) -> bool {
        let is_now = self.rotations.lock().take_due(Instant::now());
        if is_now {
            self.rotate_now().await;
        }
        is_now
    }

    /// Replaces the publish keys, and publishes a notice that only the new keys can decrypt. Minions then authenticate
    /// at once, instead of at the next job, which they would miss.
    async fn rotate_now(self: &Arc<Self>) {
        self.sessions.rotate();
        self.events.fire("key", &map! {"rotate_aes_key" => true}).await;
        self.notify_of_keys().await;
    }

    /// Replaces the publish keys by those of the cluster, with the same notice.
    pub async fn adopt_keys(self: &Arc<Self>, keys: PublishKeys) {
        if self.sessions.adopt(keys) {
            self.notify_of_keys().await;
        }
    }

    async fn notify_of_keys(self: &Arc<Self>) {
        let notice = map! {"jid" => &Jid::new(), "fun" => "test.ping", "arg" => Vec::<Value>::new(), "tgt" => Vec::<Value>::new(), "tgt_type" => "list"};
        if let Err(error) = self.send(PackedLoad::new(&notice), self.ciphers.to_vec(), Vec::new()).await {
            tracing::error!(error, "publishing the notice of new keys failed");
        }
    }

    /// Encrypts a load once for each cipher and publishes it to these minions, or to all if the list is empty. Only
    /// minions that filter publishes are addressed individually. Loads that are encrypted in parallel are published in
    /// the order of their serial numbers: Salt's minions reject a serial number below the last one.
    async fn send(
        self: &Arc<Self>,
        load: PackedLoad,
        ciphers: Vec<Cipher>,
        minions: Vec<String>,
    ) -> Result<(), String> {
        let (_published, own) = oneshot::channel::<()>();
        let (serial, previous) = {
            let mut last = self.last.lock();
            (self.sessions.next_serial(), last.replace(own))
        };
        let stream = Arc::clone(self);
        let encrypted = self.crypto.run(move |_| {
            let topics = stream.topics(&load, &minions);
            let (keys, load) =
                (stream.sessions.publish_keys(), load.with_serial(serial).map_err(|error| error.to_string())?);
            let encrypt = |cipher| Ok((cipher, stream.encrypt(cipher, &keys, &load)?));
            let payloads: Result<Vec<_>, CryptError> = ciphers.into_iter().map(encrypt).collect();
            Ok::<_, String>((topics, payloads.map_err(|error| error.to_string())?))
        });
        let encrypted = encrypted.await;
        if let Some(previous) = previous {
            // The sender is dropped when the previous load has been published, or has failed.
            _ = previous.await;
        }
        let (topics, payloads) = encrypted.map_err(|error| error.to_string())??;
        for (cipher, payload) in payloads {
            match cipher {
                Cipher::AesCbcHmac => self.publisher.publish_under(topics.clone(), &payload),
                // Brine's minions subscribe to this topic by name.
                Cipher::Aes256Gcm => self.publisher.publish_by_name(&[Bytes::from_static(TOPIC_GCM), payload]),
            };
        }
        Ok(())
    }

    /// Returns the topics of a load for minions that filter publishes. As in Salt, minions match targets of other types
    /// themselves, and all of them receive the load.
    fn topics(&self, load: &PackedLoad, minions: &[String]) -> Vec<Bytes> {
        if !self.config.zmq_filtering || !load.is_matched_here || minions.is_empty() {
            return vec![Bytes::from_static(TOPIC_BROADCAST)];
        }
        let syndic = self.config.order_masters.then_some(Bytes::from_static(TOPIC_SYNDIC));
        minions.iter().map(|id| Bytes::from(minion_topic(id))).chain(syndic).collect()
    }

    fn encrypt(&self, cipher: Cipher, keys: &PublishKeys, load: &[u8]) -> Result<Bytes, CryptError> {
        let sealed = keys.of(cipher).seal(load, None, purpose::PUBLISH);
        let mut envelope = map! {"enc" => "aes"};
        // Every minion has the publish key, and could forge unsigned publishes.
        if self.config.sign_pub_messages || cipher == Cipher::Aes256Gcm {
            let algorithm: SignatureAlgorithm = self.config.publish_signing_algorithm.parse()?;
            envelope.insert("sig_algo".into(), algorithm.name().into());
            envelope.insert("sig".into(), self.identity.private_key.sign(&sealed, algorithm)?.into());
        }
        envelope.insert("load".into(), sealed.into());
        Ok(Bytes::from(msgpack::pack_map(&envelope)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_load_gets_its_serial_number() {
        for count in [0_i64, 14, 15, 16, 70_000] {
            let load: Map = (0..count).map(|n| (format!("f{n}").into(), n.into())).collect();
            let packed = PackedLoad::new(&load).with_serial(7).unwrap();
            let mut expected = load;
            expected.insert("serial".into(), 7.into());
            assert_eq!(packed, msgpack::pack_map(&expected), "{count}");
        }
    }

    #[test]
    fn successive_rotations_are_combined() {
        let mut rotations = Rotations::default();
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        assert!(!rotations.take_due(at(0)));
        assert!(rotations.request(at(0)));
        assert!(!rotations.take_due(at(20)), "nothing was requested");
        assert!(rotations.request(at(20)));
        for second in [20, 21, 29] {
            assert!(!rotations.request(at(second)), "{second}");
            assert!(!rotations.take_due(at(second)), "{second}");
        }
        assert!(rotations.take_due(at(30)));
        assert!(!rotations.take_due(at(31)));
    }
}
