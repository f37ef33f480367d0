//! The minion's session with its master: authentication here, requests in `requests.rs`, jobs in `publishes.rs`.

mod error;
mod publishes;
mod requests;
mod source;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use brine_config::MinionConfig;
use brine_context::MASTER_KEY;
use brine_crypt::{
    Cipher, CryptError, EncryptionAlgorithm, PrivateKey, PublicKey, ReplayWindow, Session, SignatureAlgorithm, token,
};
use brine_ids::MinionId;
use brine_runtime::executors::Executor;
use brine_system::files;
use brine_value::{Map, Value, msgpack};
use brine_wire::{AuthRefusal, AuthReply, AuthRequest, Binding, Envelope, TOPIC_SYNDIC, WireError, deferred};
use brine_zmtp::{Endpoint, Framing, Keepalive, Limits, RequestClient};
use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};

pub use self::error::ChannelError;
pub use self::publishes::{OpenError, Publishes};
pub use crate::masters::Address;

/// The file below `pki_dir` with the key of the masters above a syndic.
const SYNDIC_MASTER_KEY: &str = "syndic_master.pub";

/// The number of times that an authentication waits because the master defers it.
const MAX_DEFERRALS: usize = 8;

/// The result of an authentication.
struct Keys {
    session: Session,
    publish: Session,
    publish_port: u16,
    /// The key that the master has proven to hold.
    master: PublicKey,
    /// Whether the master is a Brine master: it has signed the digest of the request.
    is_brine: bool,
    /// The proof of the minion's key in requests with Salt's cipher.
    token: Option<Vec<u8>>,
    /// The serial number of the last request, with AES-256-GCM.
    serial: AtomicU64,
    /// The number of the authentication, from 1.
    generation: u64,
}

/// A prepared authentication request.
struct PreparedAuthentication {
    request: AuthRequest,
    /// The master's key, unless this is the first contact.
    known_key: Option<PublicKey>,
    /// The token that only the holder of that key can return.
    secret: Option<Vec<u8>>,
}

/// Returns the limits of connections to a master, which are opened from `source`.
fn limits(config: &MinionConfig, source: Option<SocketAddr>) -> Limits {
    let (idle, interval) = (config.tcp_keepalive_idle, config.tcp_keepalive_intvl);
    let keepalive = Keepalive::new(config.tcp_keepalive, idle, interval, config.tcp_keepalive_cnt);
    let framing = Framing::of_transport(config.transport.is_tcp());
    let message_time = Some(Duration::from_secs(config.message_timeout.max(1)));
    Limits { framing, message: config.max_message_size, source, keepalive, message_time, ..Limits::default() }
}

fn client(config: &MinionConfig, master: &Address) -> RequestClient {
    let limits = limits(config, source::source_address(config, config.source_ret_port));
    RequestClient::new(Endpoint::Tcp(master.host.clone(), master.port), limits)
}

/// The session with one master at a time.
pub struct Channel {
    id: MinionId,
    config: Arc<MinionConfig>,
    private_key: Arc<PrivateKey>,
    /// The request client of the current master, replaced when the master changes.
    client: RwLock<RequestClient>,
    crypto: Executor,
    keys: RwLock<Option<Arc<Keys>>>,
    seen: Mutex<ReplayWindow>,
    /// Serializes authentications.
    authenticating: tokio::sync::Mutex<()>,
    /// The number of sessions so far.
    sessions: AtomicU64,
    /// The number of finished authentications, successful or not.
    attempts: AtomicU64,
    /// The master's key, if it is kept in memory instead of on disk.
    master: Option<RwLock<Option<PublicKey>>>,
    /// The grains that are sent with the key, for autosigning.
    autosign_grains: Map,
    /// The file below `pki_dir` with the master's key.
    master_key_file: &'static str,
    /// The topic of publishes for all syndics, if this is one.
    syndic_topic: Option<&'static [u8]>,
}

impl Channel {
    /// Creates a channel to the master at this host, as [`Channel::to`].
    ///
    /// # Errors
    /// The errors of [`Channel::to`].
    pub fn new(id: MinionId, config: Arc<MinionConfig>, host: &str, crypto: Executor) -> Result<Self, ChannelError> {
        let master = Address { host: host.to_owned(), port: config.master_port };
        Self::to(id, config, &master, crypto)
    }

    /// Creates a channel to this master, without a session. Generates the minion's key if there is none.
    ///
    /// # Errors
    /// Key files that cannot be read or written.
    pub fn to(
        id: MinionId,
        config: Arc<MinionConfig>,
        master: &Address,
        crypto: Executor,
    ) -> Result<Self, ChannelError> {
        files::create_private_dir(&config.pki_dir)?;
        let private_key = PrivateKey::load_or_generate(&config.pki_dir, "minion", config.keysize)?;
        let client = client(&config, master);
        Ok(Channel { master: None, ..Self::with_key(id, config, Arc::new(private_key), client, crypto) })
    }

    /// Creates a channel like [`Channel::to`], with a key and a request connection that other channels may share.
    /// Nothing is stored on disk: the master's key of the first contact is trusted as long as the channel exists.
    pub fn with_key(
        id: MinionId,
        config: Arc<MinionConfig>,
        private_key: Arc<PrivateKey>,
        client: RequestClient,
        crypto: Executor,
    ) -> Self {
        Channel {
            id,
            config,
            private_key,
            client: RwLock::new(client),
            crypto,
            keys: RwLock::new(None),
            sessions: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            seen: Mutex::default(),
            authenticating: tokio::sync::Mutex::default(),
            master: Some(RwLock::default()),
            autosign_grains: Map::new(),
            master_key_file: MASTER_KEY,
            syndic_topic: None,
        }
    }

    /// Creates a channel like [`Channel::with_key`] that expects the master to have a known key.
    pub(crate) fn for_check(
        id: MinionId,
        config: Arc<MinionConfig>,
        key: Arc<PrivateKey>,
        master: &Address,
        known_key: Option<PublicKey>,
        crypto: Executor,
    ) -> Self {
        let client = client(&config, master);
        Channel { master: Some(RwLock::new(known_key)), ..Self::with_key(id, config, key, client, crypto) }
    }

    /// Makes this the channel of a syndic to a master above: as in Salt, the key of that master is in a file of its own,
    /// beside that of the minion's master, and all jobs are received.
    #[must_use]
    pub fn of_syndic(self) -> Self {
        Channel { master_key_file: SYNDIC_MASTER_KEY, syndic_topic: Some(TOPIC_SYNDIC), ..self }
    }

    /// Sets the grains in `autosign_grains`, which are sent with the key. As in Salt, a missing grain is sent as null.
    #[must_use]
    pub fn with_autosign_grains(mut self, grains: &Map) -> Self {
        let grain = |name: &String| (name.as_str().into(), grains.get(name.as_str()).cloned().unwrap_or_default());
        self.autosign_grains = self.config.autosign_grains.iter().map(grain).collect();
        self
    }

    /// Ends the session; the next one is with this master.
    pub async fn move_to(&self, master: &Address) {
        // An authentication that is under way must not leave keys of the other master.
        let _one_at_a_time = self.authenticating.lock().await;
        *self.client.write() = client(&self.config, master);
        *self.keys.write() = None;
    }

    /// Returns the id of the minion.
    pub fn id(&self) -> &MinionId {
        &self.id
    }

    /// Returns the address of the current master.
    pub fn master(&self) -> Option<Address> {
        let client = self.client();
        let Endpoint::Tcp(host, port) = client.endpoint() else { return None };
        Some(Address { host: host.clone(), port: *port })
    }

    fn client(&self) -> RequestClient {
        self.client.read().clone()
    }

    /// Returns the endpoint of publishes; `None` before the first session.
    pub fn publish_endpoint(&self) -> Option<Endpoint> {
        let keys = self.keys.read().clone()?;
        let client = self.client();
        let Endpoint::Tcp(host, _) = client.endpoint() else { return None };
        Some(Endpoint::Tcp(host.clone(), self.config.publish_port.unwrap_or(keys.publish_port)))
    }

    /// Whether the session is with a Brine master.
    pub fn is_brine(&self) -> bool {
        self.keys.read().as_ref().is_some_and(|keys| keys.is_brine)
    }

    /// Returns the number of the session, from 1; 0 without a session.
    pub(crate) fn generation(&self) -> u64 {
        self.keys.read().as_ref().map_or(0, |keys| keys.generation)
    }

    /// Returns the cipher of the session.
    pub fn cipher(&self) -> Option<Cipher> {
        self.keys.read().as_ref().map(|keys| keys.session.cipher())
    }

    /// Authenticates with the master once, and begins a session if the key is accepted. Concurrent callers share one
    /// session.
    pub async fn authenticate(self: &Arc<Self>) -> Result<(), ChannelError> {
        let used = self.generation();
        let _one_at_a_time = self.authenticating.lock().await;
        if self.generation() == used { self.authenticate_now().await } else { Ok(()) }
    }

    /// Replaces the session of this generation, unless another request has just done so or failed to.
    async fn renew(self: &Arc<Self>, used: u64) -> Result<(), ChannelError> {
        let attempts = self.attempts.load(Ordering::Relaxed);
        let _one_at_a_time = self.authenticating.lock().await;
        if self.generation() != used {
            return Ok(());
        }
        if self.attempts.load(Ordering::Relaxed) != attempts {
            return Err(ChannelError::Refused);
        }
        self.authenticate_now().await
    }

    async fn authenticate_now(self: &Arc<Self>) -> Result<(), ChannelError> {
        let mut result = self.exchange_keys().await;
        for _ in 0..MAX_DEFERRALS {
            let Err(ChannelError::Deferred(after)) = result else { break };
            tracing::debug!(?after, "the master defers the authentication");
            // Jitter: minions that were deferred by the same time must not retry at the same moment.
            tokio::time::sleep(after.mul_f64(rand::random_range(1.0..1.2))).await;
            result = self.exchange_keys().await;
        }
        self.attempts.fetch_add(1, Ordering::Relaxed);
        result
    }

    async fn exchange_keys(self: &Arc<Self>) -> Result<(), ChannelError> {
        let this = Arc::clone(self);
        // Reads key files, and RSA takes milliseconds: not on the thread that serves sockets.
        let PreparedAuthentication { request, known_key, secret } = self.crypto.run(move |_| this.prepare()).await??;
        let timeout = self.config.auth_timeout.pause();
        let load = request.to_map();
        let binding = Binding::of(&load)?;
        let answer = self.send(Envelope::clear(load).into(), timeout).await?;
        let this = Arc::clone(self);
        let keys =
            self.crypto.run(move |_| this.accept_reply(&request, &binding, known_key, secret, &answer)).await??;
        let before = self.keys.read().as_ref().map(|before| before.publish.key_text());
        if before.is_none_or(|before| before != keys.publish.key_text()) {
            // Salt's masters restart their serial numbers with each key; earlier messages do not decrypt with it.
            *self.seen.lock() = ReplayWindow::default();
        }
        *self.keys.write() = Some(Arc::new(keys));
        Ok(())
    }

    fn prepare(&self) -> Result<PreparedAuthentication, ChannelError> {
        let known_key = self.master_key()?;
        let encryption: EncryptionAlgorithm = self.config.encryption_algorithm.parse()?;
        let signature: SignatureAlgorithm = self.config.signing_algorithm.parse()?;
        let secret = token::random_bytes::<24>().to_vec();
        let sealed = known_key.as_ref().map(|key| key.encrypt(&secret, encryption)).transpose()?;
        let request = AuthRequest {
            id: self.id.clone(),
            public_key: self.private_key.public().to_pem().trim_end().to_owned(),
            nonce: token::nonce(),
            encryption,
            signature,
            token: sealed,
            is_token_optional: true,
            ciphers: self.config.ciphers.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
            autosign_grains: self.autosign_grains.clone(),
        };
        let secret = known_key.is_some().then_some(secret);
        Ok(PreparedAuthentication { request, known_key, secret })
    }

    fn accept_reply(
        &self,
        request: &AuthRequest,
        binding: &Binding,
        known_key: Option<PublicKey>,
        secret: Option<Vec<u8>>,
        answer: &[u8],
    ) -> Result<Keys, ChannelError> {
        let Value::Map(answer) = msgpack::unpack(answer).map_err(WireError::from)? else {
            // The reply is an error such as "bad load".
            return Err(ChannelError::Refused);
        };
        if let Some(after) = deferred(&answer) {
            return Err(ChannelError::Deferred(after));
        }
        let (Some(load), Some(sig)) =
            (answer.get("load").and_then(Value::as_bytes), answer.get("sig").and_then(Value::as_bytes))
        else {
            if known_key.is_some() {
                return Err(ChannelError::Unsigned);
            }
            // Older masters do not sign the reply to a pending minion; nothing in it is trusted.
            return match answer.get("load").and_then(|load| load.get("ret")) {
                Some(Value::Bool(true)) => Err(ChannelError::Pending(self.id.clone())),
                Some(Value::Bool(false)) => Err(ChannelError::Rejected(self.id.clone())),
                _ => Err(ChannelError::Refused),
            };
        };
        let map = msgpack::unpack_map(load).map_err(WireError::from)?;
        let reply = AuthReply::from_map(&map, binding)?;
        let accepted = match reply {
            AuthReply::Refused(verdict) => {
                if known_key.is_some_and(|key| key.verify(load, sig, request.signature).is_err()) {
                    // With a signed master key the master may be a different one, but it sends its key only to accepted
                    // minions. Anyone can forge this reply without any key: it proves nothing and must not end the
                    // minion.
                    let may_be_another = self.config.verify_master_pubkey_sign;
                    return Err(if may_be_another {
                        ChannelError::Pending(self.id.clone())
                    } else {
                        CryptError::BadSignature.into()
                    });
                }
                return Err(match verdict {
                    AuthRefusal::Pending => ChannelError::Pending(self.id.clone()),
                    AuthRefusal::Rejected => ChannelError::Rejected(self.id.clone()),
                    AuthRefusal::Full => ChannelError::Full,
                    AuthRefusal::NoCipher => ChannelError::NoCipher(self.config.ciphers.join(", ")),
                });
            }
            AuthReply::Accepted(accepted) => accepted,
        };
        let cipher = accepted.cipher;
        if !request.ciphers.is_empty() && !request.ciphers.contains(&cipher) {
            return Err(ChannelError::NoCipher(self.config.ciphers.join(", ")));
        }
        let master = PublicKey::from_pem(&accepted.public_key)?;
        let is_known = known_key.as_ref() == Some(&master);
        let voucher = accepted.public_key_signature.as_deref();
        self.check_voucher(&accepted.public_key, voucher, request.signature, is_known)?;
        match &known_key {
            Some(_) if is_known || self.config.verify_master_pubkey_sign => {}
            Some(_) => return Err(self.changed_master()),
            None => self.check_fingerprint(&master)?,
        }
        // The token was encrypted with the known key: a master with another key cannot return it.
        let secret = secret.filter(|_| is_known);
        master.verify(load, sig, request.signature)?;
        let publish = self.private_key.decrypt(&accepted.publish_key, request.encryption)?;
        // The signature of a reply with the digest of this request proves the same.
        if let Some(secret) = secret.as_ref().filter(|_| !AuthReply::is_bound(&map)) {
            let returned = accepted.token.and_then(|token| self.private_key.decrypt(&token, request.encryption).ok());
            if !returned.is_some_and(|returned| token::constant_time_eq(returned, secret)) {
                return Err(ChannelError::WrongToken);
            }
        }
        let digest = brine_digest::hex(Sha256::digest(&publish));
        if master.recover_x931(&accepted.signature)? != digest.as_bytes() {
            return Err(CryptError::BadSignature.into());
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|_| CryptError::Malformed("a session key"));
        let publish = Session::from_key_text(&text(publish)?)?;
        let session =
            Session::from_key_text(&text(self.private_key.decrypt(&accepted.session_key, request.encryption)?)?)?;
        if publish.cipher() != cipher || session.cipher() != cipher {
            return Err(CryptError::Malformed("a session key of the cipher that was agreed on").into());
        }
        if secret.is_none() {
            // Trust on first use: this key is the master's from now on.
            self.keep_master_key(master.clone(), known_key.is_some())?;
        }
        let token = match cipher {
            Cipher::Aes256Gcm => None,
            Cipher::AesCbcHmac => Some(self.private_key.sign_x931(b"salt")?),
        };
        Ok(Keys {
            session,
            publish,
            publish_port: accepted.publish_port,
            master,
            is_brine: AuthReply::is_bound(&map),
            token,
            serial: AtomicU64::new(0),
            generation: self.sessions.fetch_add(1, Ordering::Relaxed) + 1,
        })
    }

    fn changed_master(&self) -> ChannelError {
        ChannelError::ChangedMaster(self.config.pki_dir.join(self.master_key_file))
    }

    /// Verifies the signature of the master's key, if one is required.
    fn check_voucher(
        &self,
        pem: &str,
        signature: Option<&str>,
        algorithm: SignatureAlgorithm,
        is_known: bool,
    ) -> Result<(), ChannelError> {
        let path = self.config.pki_dir.join(format!("{}.pub", self.config.master_sign_key_name));
        let refused = |reason| ChannelError::NotVouchedFor { path: path.clone(), reason };
        let signature = match (self.config.verify_master_pubkey_sign, signature) {
            (false, None) => return Ok(()),
            (false, Some(_)) => return Err(ChannelError::VouchedFor),
            (true, None) => return Err(refused("the master does not sign it: set master_sign_pubkey there")),
            (true, Some(_)) if is_known && !self.config.always_verify_signature => return Ok(()),
            (true, Some(signature)) => signature,
        };
        let voucher = files::read_if_exists(&path)?.ok_or_else(|| refused("copy this file from the master"))?;
        let packed: String = signature.split_whitespace().collect();
        let bytes = BASE64_STANDARD.decode(packed).map_err(|_| refused("its signature is not base64"))?;
        let verified = PublicKey::from_pem(&voucher)?.verify(pem.as_bytes(), &bytes, algorithm);
        verified.map_err(|_| refused("the signature is not of that key and this one"))
    }

    fn master_key(&self) -> Result<Option<PublicKey>, ChannelError> {
        if let Some(slot) = &self.master {
            return Ok(slot.read().clone());
        }
        let pem = files::read_if_exists(self.config.pki_dir.join(self.master_key_file))?;
        Ok(pem.map(|pem| PublicKey::from_pem(&pem)).transpose()?)
    }

    /// Stores the master's key: replaces the known key if `is_replaced`, else stores the first one.
    fn keep_master_key(&self, master: PublicKey, is_replaced: bool) -> Result<(), ChannelError> {
        let path = self.config.pki_dir.join(self.master_key_file);
        let pem = master.to_pem();
        let is_kept = match &self.master {
            Some(slot) => {
                *slot.write() = Some(master.clone());
                true
            }
            None if is_replaced => files::write_atomic(&path, pem.as_bytes(), 0o644).map(|()| true)?,
            None => files::write_new(&path, pem.as_bytes(), 0o644)?,
        };
        // Another connection has stored the key of its master meanwhile: all masters need the same one.
        if !is_kept && self.master_key()?.as_ref() != Some(&master) {
            return Err(self.changed_master());
        }
        tracing::info!(fingerprint = %master.fingerprint(), "the master's key is stored: it is trusted from now on");
        Ok(())
    }

    fn check_fingerprint(&self, master: &PublicKey) -> Result<(), ChannelError> {
        let Some(expected) = self.config.master_finger.clone().filter(|finger| !finger.is_empty()) else {
            return Ok(());
        };
        let actual = master.fingerprint();
        if token::constant_time_eq(expected.to_lowercase(), &actual) {
            return Ok(());
        }
        Err(ChannelError::WrongFingerprint { expected, found: actual })
    }
}
