//! Session keys of minions, and the rotation of all keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use brine_crypt::{
    Cipher, CryptError, EncryptionAlgorithm, PrivateKey, PublicKey, ReplayWindow, Session, SignatureAlgorithm,
};
use brine_ids::MinionId;
use brine_value::msgpack::{self, Budget};
use brine_value::{Map, Value};
use brine_wire::{WireError, private, purpose};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use super::publish_keys::PublishKeys;

/// The error of an encrypted request. The minion receives only `bad load`.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The minion has not authenticated with this master since it started or rotated its keys.
    #[error("there is no session")]
    NoSession,
    /// The request cannot be decrypted.
    #[error(transparent)]
    Crypt(#[from] CryptError),
    /// The request is malformed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The request names another minion than that of the session.
    #[error("the message names another sender: '{0}'")]
    ForeignId(String),
    /// The serial number of the request was used before.
    #[error("the message is a replay")]
    Replay,
    /// The request is older than `request_server_ttl`.
    #[error("the message is too old")]
    TooOld,
    /// The token of the request does not prove possession of the minion's key.
    #[error("the token does not prove the minion's key")]
    BadToken,
}

/// A decrypted request, with the session for its reply.
pub struct Opened {
    /// The fields of the command.
    pub load: Map,
    public_key: Arc<PublicKey>,
    session: Session,
    nonce: Option<String>,
    id: MinionId,
}

/// The maximum number of proven sessions of a minion, and separately of unproven ones: its daemon and every `salt-call`
/// authenticate separately. A process whose session has been dropped authenticates again.
const MAX_PER_MINION: usize = 8;

struct MinionSession {
    /// The number of the session.
    number: u64,
    session: Session,
    public_key: Arc<PublicKey>,
    window: ReplayWindow,
    /// Whether the next authentication must create a new key.
    expired: bool,
    /// Whether a request was encrypted with the session, which requires the private key of the minion. Anyone with the
    /// public key can begin sessions, so unproven sessions must not evict one in use. Nor may proven sessions of
    /// processes that have ended evict one that is about to be used. Hence each kind has its own limit.
    proven: bool,
}

/// Marks a session as proven and most recently used; beyond the limit, the least recently used proven one is dropped.
fn prove(sessions: &mut Vec<MinionSession>, index: usize) {
    sessions[index].proven = true;
    sessions[..=index].rotate_right(1);
    drop_excess(sessions, true);
}

/// Drops the least recently used session of a kind, proven or not, if there are more than the limit.
fn drop_excess(sessions: &mut Vec<MinionSession>, proven: bool) {
    let is_kind = |entry: &&MinionSession| entry.proven == proven;
    if sessions.iter().filter(is_kind).count() > MAX_PER_MINION
        && let Some(last) = sessions.iter().rposition(|entry| entry.proven == proven)
    {
        sessions.remove(last);
    }
}

/// All session keys of a master.
pub struct Sessions {
    /// The sessions of each minion, most recently used first.
    minions: Mutex<HashMap<MinionId, Vec<MinionSession>>>,
    begun: AtomicU64,
    publish: RwLock<PublishKeys>,
    serial: AtomicU64,
    rotated: watch::Sender<()>,
    /// Whether the keys are shared with other members of a cluster.
    shared: AtomicBool,
}

impl Default for Sessions {
    fn default() -> Self {
        Self::new()
    }
}

impl Sessions {
    /// Generates the publish keys; no minion has a session.
    pub fn new() -> Self {
        Sessions {
            minions: Mutex::default(),
            begun: AtomicU64::new(0),
            publish: RwLock::new(PublishKeys::generate()),
            serial: AtomicU64::new(now_micros()),
            rotated: watch::Sender::new(()),
            shared: AtomicBool::new(false),
        }
    }

    /// Begins a session of an authenticated minion. With Salt's cipher all processes of the minion share one session
    /// until keys are rotated, in a cluster across all members. With AES-256-GCM each process has its own, because each
    /// numbers its requests.
    pub fn begin(&self, id: &MinionId, public_key: Arc<PublicKey>, cipher: Cipher) -> Session {
        let mut minions = self.minions.lock();
        let sessions = minions.entry(id.clone()).or_default();
        sessions.retain(|entry| *entry.public_key == *public_key && !entry.expired);
        if let Some(entry) = sessions.iter().find(|entry| entry.session.cipher() == cipher)
            && cipher == Cipher::AesCbcHmac
        {
            return entry.session.clone();
        }
        let session = match cipher {
            Cipher::AesCbcHmac if self.are_shared() => self.publish.read().session_of(id, &public_key),
            _ => Session::generate(cipher),
        };
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let window = ReplayWindow::default();
        let begun = session.clone();
        sessions.insert(0, MinionSession { number, session: begun, public_key, window, expired: false, proven: false });
        drop_excess(sessions, false);
        session
    }

    /// Ends the sessions of a minion whose key is no longer accepted.
    pub fn end(&self, id: &MinionId) {
        self.minions.lock().remove(id);
    }

    /// Returns the number of minions with a session.
    pub fn count(&self) -> usize {
        self.minions.lock().len()
    }

    /// Returns the keys of the publish stream.
    pub fn publish_keys(&self) -> PublishKeys {
        self.publish.read().clone()
    }

    /// Returns the ciphers that current sessions use.
    pub fn ciphers_in_use(&self) -> Vec<Cipher> {
        let minions = self.minions.lock();
        let used = |cipher: &Cipher| minions.values().flatten().any(|entry| entry.session.cipher() == *cipher);
        Cipher::ALL.iter().copied().filter(used).collect()
    }

    /// Returns whether all of these minions have a session. After a restart of the master they have none until they
    /// authenticate again.
    pub fn knows_all(&self, minions: &[String]) -> bool {
        let sessions = self.minions.lock();
        minions.iter().all(|id| sessions.contains_key(id.as_str()))
    }

    /// Replaces the publish keys. Minions then authenticate again and receive new sessions.
    pub fn rotate(&self) {
        self.replace(PublishKeys::generate());
        self.rotated.send_replace(());
    }

    /// Returns a receiver that changes whenever [`rotate`](Self::rotate) has replaced the keys.
    pub fn rotated(&self) -> watch::Receiver<()> {
        self.rotated.subscribe()
    }

    /// Replaces the publish keys by those of the cluster. Returns whether they differ.
    pub fn adopt(&self, keys: PublishKeys) -> bool {
        let current = self.publish_keys();
        self.shared.store(true, Ordering::Relaxed);
        let pairs = [(&current.cbc, &keys.cbc), (&current.gcm, &keys.gcm), (&current.seed, &keys.seed)];
        if pairs.iter().all(|(old, new)| old.key_text() == new.key_text()) {
            return false;
        }
        self.replace(keys);
        true
    }

    /// Marks the keys as shared, and returns the publish keys for the other members of the cluster.
    pub fn share(&self) -> PublishKeys {
        self.shared.store(true, Ordering::Relaxed);
        self.publish_keys()
    }

    /// Whether the keys are shared with other members of a cluster.
    pub fn are_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    /// Decrypts a request as [`open`](Self::open), of a minion that has authenticated with another member of the cluster.
    pub fn open_shared(
        &self,
        id: &MinionId,
        public_key: Arc<PublicKey>,
        sealed: &[u8],
    ) -> Result<Opened, SessionError> {
        let session = self.publish.read().session_of(id, &public_key);
        session.open(sealed, None, &purpose::request(id))?;
        self.begin(id, public_key, Cipher::AesCbcHmac);
        self.open(id, sealed)
    }

    fn replace(&self, keys: PublishKeys) {
        self.minions.lock().values_mut().flatten().for_each(|entry| entry.expired = true);
        *self.publish.write() = keys;
    }

    /// Returns the serial number of the next publish. It is at least the current time in microseconds, so that numbers
    /// rise across restarts and for minions that come from another master.
    pub fn next_serial(&self) -> u64 {
        let now = now_micros();
        let next = |last: u64| Some((last + 1).max(now));
        match self.serial.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(last) | Err(last) => (last + 1).max(now),
        }
    }

    /// Decrypts a request and checks its freshness and its sender.
    pub fn open(&self, id: &MinionId, sealed: &[u8]) -> Result<Opened, SessionError> {
        let candidates: Vec<_> = {
            let minions = self.minions.lock();
            let sessions = minions.get(id).ok_or(SessionError::NoSession)?;
            sessions.iter().map(|entry| (entry.number, entry.session.clone(), Arc::clone(&entry.public_key))).collect()
        };
        let mut refused = SessionError::NoSession;
        let opened = candidates.into_iter().find_map(|(number, session, public_key)| {
            match session.open(sealed, None, &purpose::request(id)) {
                Ok(plain) => Some((number, session, public_key, plain)),
                Err(error) => {
                    refused = error.into();
                    None
                }
            }
        });
        let Some((number, session, public_key, plain)) = opened else { return Err(refused) };
        let load = msgpack::unpack_map_within(&plain, Budget::AUTHENTICATED).map_err(WireError::from)?;
        let inner = load.get("id").and_then(Value::as_str);
        if inner.is_some_and(|inner| inner != id.as_str()) {
            return Err(SessionError::ForeignId(inner.unwrap_or_default().chars().take(64).collect()));
        }
        let nonce = load.get("nonce").and_then(Value::as_str).map(str::to_owned);
        match session.cipher() {
            Cipher::Aes256Gcm => {
                let serial = load.get("serial").and_then(Value::as_i64).and_then(|serial| u64::try_from(serial).ok());
                let mut minions = self.minions.lock();
                let sessions = minions.get_mut(id).ok_or(SessionError::NoSession)?;
                let index = sessions.iter().position(|entry| entry.number == number).ok_or(SessionError::NoSession)?;
                if !serial.is_some_and(|serial| sessions[index].window.is_new(serial)) {
                    return Err(SessionError::Replay);
                }
                prove(sessions, index);
            }
            Cipher::AesCbcHmac => {
                let token = load.get("tok").and_then(Value::as_bytes).ok_or(SessionError::BadToken)?;
                if public_key.recover_x931(token).ok().as_deref() != Some(b"salt") {
                    return Err(SessionError::BadToken);
                }
                if let Some(sessions) = self.minions.lock().get_mut(id)
                    && let Some(index) = sessions.iter().position(|entry| entry.number == number)
                {
                    prove(sessions, index);
                }
            }
        }
        Ok(Opened { load, public_key, session, nonce, id: id.clone() })
    }
}

fn now_micros() -> u64 {
    jiff::Timestamp::now().as_microsecond().max(1).cast_unsigned()
}

impl Opened {
    /// Whether the request was sent at most `seconds` ago. AES-256-GCM uses serial numbers instead.
    pub fn is_within(&self, seconds: u64) -> bool {
        let age = |sent: f64| jiff::Timestamp::now().as_second() as f64 - sent;
        self.session.cipher() != Cipher::AesCbcHmac
            || self.load.get("ts").and_then(Value::as_f64).is_some_and(|sent| age(sent) <= seconds as f64)
    }

    /// Returns the public key whose possession the minion has proven.
    pub fn public_key(&self) -> Arc<PublicKey> {
        Arc::clone(&self.public_key)
    }

    /// Encrypts a reply that contains secrets. With Salt's cipher it uses a separate key, encrypted for the minion's
    /// RSA key, and a signature; with AES-256-GCM it is encrypted like any other reply.
    pub fn reply_private(
        &self,
        value: &Value,
        master: &PrivateKey,
        encryption: EncryptionAlgorithm,
        signature: SignatureAlgorithm,
    ) -> Result<Vec<u8>, SessionError> {
        match self.session.cipher() {
            Cipher::Aes256Gcm => Ok(self.reply(value)),
            Cipher::AesCbcHmac => {
                let nonce = self.nonce.as_deref().ok_or(WireError::Missing("nonce"))?;
                Ok(private::seal(value, nonce, &self.public_key, master, encryption, signature)?)
            }
        }
    }

    /// Packs and encrypts a reply. Values that cannot be packed are converted to other types.
    pub fn reply(&self, value: &Value) -> Vec<u8> {
        let sealed = self.session.seal(&msgpack::pack(value), self.nonce.as_deref(), &purpose::reply(&self.id));
        msgpack::pack(&sealed.into())
    }
}

#[cfg(test)]
mod tests;
