//! The minion's session with its master: authentication, sealed requests, opened publishes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use brine_core::config::MinionConfig;
use brine_core::crypt::{
    Cipher, CryptError, EncryptionAlgorithm, PrivateKey, PublicKey, ReplayWindow, Session, SignatureAlgorithm, token,
};
use brine_core::files::{self, FileError};
use brine_core::transport::{Endpoint, Limits, RequestClient, TransportError};
use brine_core::value::msgpack;
use brine_core::wire::{
    AuthReply, AuthRequest, Binding, Envelope, Publication, Verdict, WireError, encrypted, private, purpose,
};
use brine_core::{Map, MinionId, Value};
use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};

/// The file below `pki_dir` that holds the key of the minion's master.
pub(crate) const MASTER_KEY: &str = "minion_master.pub";

/// Why the minion and its master do not come together.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The master does not answer.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// What came cannot be opened or verified.
    #[error(transparent)]
    Crypt(#[from] CryptError),
    /// What came is not understood.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A reply to this minion alone cannot be taken.
    #[error(transparent)]
    Private(#[from] private::PrivateError),
    /// A key file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The master's key is not the one that is known.
    #[error(
        "the master's key is not the one in {0}: if the master was really replaced, delete that file; if not, somebody stands between"
    )]
    ChangedMaster(PathBuf),
    /// The master's key has another fingerprint than `master_finger` says.
    #[error("the master's key has the fingerprint {found}, master_finger says {expected}")]
    WrongFingerprint {
        /// What is configured.
        expected: String,
        /// What the master has.
        found: String,
    },
    /// Nothing vouches for the master's key, or not what should.
    #[error("the master's key is not vouched for by {path}: {reason}")]
    NotVouchedFor {
        /// The public key that should have signed it.
        path: PathBuf,
        /// What is missing or wrong.
        reason: &'static str,
    },
    /// The master has its key vouched for, which this minion does not look at.
    #[error(
        "the master signs its key (master_sign_pubkey): set verify_master_pubkey_sign here too, or switch it off there"
    )]
    VouchedFor,
    /// The master could not show that it holds its key.
    #[error("the master did not return the token that it was sent")]
    WrongToken,
    /// The key waits to be accepted.
    #[error("the master has not accepted this minion's key yet: run `salt-key -a {0}` there")]
    Pending(MinionId),
    /// The key is rejected.
    #[error("the master has rejected this minion's key: run `salt-key -d {0}` there to try again")]
    Rejected(MinionId),
    /// The master wants no cipher that this minion allows.
    #[error(
        "the master allows none of the ciphers that the option 'ciphers' allows here ({0}): compare it with the master's"
    )]
    NoCipher(String),
    /// The answer to an authentication is not signed, although the master's key is known.
    #[error("the answer to the authentication is not signed with the master's key: it is not taken")]
    Unsigned,
    /// The master has as many minions as it may.
    #[error("the master has as many minions as it may (max_minions)")]
    Full,
    /// The master refuses a request.
    #[error("the master refuses the request")]
    Refused,
    /// A publish is not signed.
    #[error("a publish is not signed with the master's key")]
    UnsignedPublish,
    /// The same publish came before.
    #[error("a publish came twice")]
    Replay,
}

impl ChannelError {
    /// Whether who stands between minion and master could have brought this about, by an answer that neither
    /// proves nor changes anything.
    pub fn may_be_forged(&self) -> bool {
        match self {
            ChannelError::Refused | ChannelError::Unsigned | ChannelError::Wire(_) | ChannelError::WrongToken => true,
            ChannelError::Crypt(error) => matches!(
                error,
                CryptError::WrongKey | CryptError::BadSignature | CryptError::WrongNonce | CryptError::Malformed(_)
            ),
            _ => false,
        }
    }
}

struct Keys {
    session: Session,
    publish: Session,
    publish_port: u16,
}

/// The session with one master.
pub struct Channel {
    id: MinionId,
    config: Arc<MinionConfig>,
    private_key: Arc<PrivateKey>,
    client: RequestClient,
    keys: RwLock<Option<Arc<Keys>>>,
    serial: AtomicU64,
    seen: Mutex<ReplayWindow>,
    authenticating: tokio::sync::Mutex<()>,
    /// The master's key, if it is kept here and not on disk.
    master: Option<RwLock<Option<PublicKey>>>,
    /// What is shown along with the key, for the master to accept it by.
    autosign_grains: Map,
}

impl Channel {
    /// A session that is not begun, with the master at this host. Makes the minion's key if there is none.
    pub fn new(id: MinionId, config: Arc<MinionConfig>, host: &str) -> Result<Self, ChannelError> {
        files::create_private_dir(&config.pki_dir)?;
        let private_key = PrivateKey::load_or_generate(&config.pki_dir, "minion", config.keysize)?;
        let limits = Limits { message: config.max_message_size, ..Limits::default() };
        let client = RequestClient::new(Endpoint::Tcp(host.to_owned(), config.master_port), limits);
        Ok(Channel { master: None, ..Self::with_key(id, config, Arc::new(private_key), client) })
    }

    /// As [`Channel::new`], with a key and a connection for requests that others may share. Nothing is kept on disk:
    /// the first contact makes the master known for as long as this lives.
    pub fn with_key(
        id: MinionId,
        config: Arc<MinionConfig>,
        private_key: Arc<PrivateKey>,
        client: RequestClient,
    ) -> Self {
        Channel {
            id,
            config,
            private_key,
            client,
            keys: RwLock::new(None),
            serial: AtomicU64::new(0),
            seen: Mutex::default(),
            authenticating: tokio::sync::Mutex::default(),
            master: Some(RwLock::default()),
            autosign_grains: Map::new(),
        }
    }

    /// Shows those of these grains along with the key that `autosign_grains` names. One that is not there is shown as
    /// none, as by Salt.
    #[must_use]
    pub fn showing(mut self, grains: &Map) -> Self {
        let shown = |name: &String| (name.as_str().into(), grains.get(name.as_str()).cloned().unwrap_or_default());
        self.autosign_grains = self.config.autosign_grains.iter().map(shown).collect();
        self
    }

    /// Where publishes come from; known once the session has begun.
    pub fn publish_endpoint(&self) -> Option<Endpoint> {
        let keys = self.keys.read().clone()?;
        let Endpoint::Tcp(host, _) = self.client.endpoint() else { return None };
        Some(Endpoint::Tcp(host.clone(), self.config.publish_port.unwrap_or(keys.publish_port)))
    }

    /// What the session is sealed with.
    pub fn cipher(&self) -> Option<Cipher> {
        self.keys.read().as_ref().map(|keys| keys.session.cipher())
    }

    /// Shows the master this minion's key, once, and begins a session if it accepts.
    pub async fn authenticate(self: &Arc<Self>) -> Result<(), ChannelError> {
        let _one_at_a_time = self.authenticating.lock().await;
        let master_key = self.master_key()?;
        let encryption: EncryptionAlgorithm = self.config.encryption_algorithm.parse()?;
        let signature: SignatureAlgorithm = self.config.signing_algorithm.parse()?;
        let secret = token::random_bytes::<24>().to_vec();
        let sealed = master_key.as_ref().map(|key| key.encrypt(&secret, encryption)).transpose()?;
        let request = AuthRequest {
            id: self.id.clone(),
            public_key: self.private_key.public().to_pem().trim_end().to_owned(),
            nonce: token::nonce(),
            encryption,
            signature,
            token: sealed,
            ciphers: self.config.ciphers.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
            autosign_grains: self.autosign_grains.clone(),
        };
        let timeout = Duration::from_secs(self.config.auth_timeout.max(1));
        let load = request.to_map();
        let binding = Binding::of(&load)?;
        let answer = self.client.request(Envelope::clear(load), timeout).await?;
        let this = Arc::clone(self);
        let secret = master_key.is_some().then_some(secret);
        // RSA takes milliseconds: not on the thread that serves sockets.
        let taken =
            tokio::task::spawn_blocking(move || this.take_answer(&request, &binding, master_key, secret, &answer))
                .await;
        let keys = taken.map_err(|_| ChannelError::Refused)??;
        let before = self.keys.read().as_ref().map(|before| before.publish.key_text());
        if before.is_none_or(|before| before != keys.publish.key_text()) {
            // Salt's masters count anew with each key; nothing of before opens with it.
            *self.seen.lock() = ReplayWindow::default();
        }
        *self.keys.write() = Some(Arc::new(keys));
        self.serial.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn take_answer(
        &self,
        request: &AuthRequest,
        binding: &Binding,
        known: Option<PublicKey>,
        secret: Option<Vec<u8>>,
        answer: &[u8],
    ) -> Result<Keys, ChannelError> {
        let Value::Map(answer) = msgpack::unpack(answer).map_err(WireError::from)? else {
            // Such as "bad load".
            return Err(ChannelError::Refused);
        };
        let (Some(load), Some(sig)) =
            (answer.get("load").and_then(Value::as_bytes), answer.get("sig").and_then(Value::as_bytes))
        else {
            if known.is_some() {
                return Err(ChannelError::Unsigned);
            }
            // Older masters do not sign that a minion has to wait; nothing is learned from it.
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
                if known.is_some_and(|known| known.verify(load, sig, request.signature).is_err()) {
                    // A master that is vouched for may be another one, but shows its key only to whom it lets in. Anybody
                    // else can make such a reply without any key: it proves nothing and must not end the minion.
                    let may_be_another = self.config.verify_master_pubkey_sign;
                    return Err(if may_be_another {
                        ChannelError::Pending(self.id.clone())
                    } else {
                        CryptError::BadSignature.into()
                    });
                }
                return Err(match verdict {
                    Verdict::Pending => ChannelError::Pending(self.id.clone()),
                    Verdict::Rejected => ChannelError::Rejected(self.id.clone()),
                    Verdict::Full => ChannelError::Full,
                    Verdict::NoCipher => ChannelError::NoCipher(self.config.ciphers.join(", ")),
                });
            }
            AuthReply::Accepted(accepted) => accepted,
        };
        let cipher = accepted.cipher;
        if !request.ciphers.is_empty() && !request.ciphers.contains(&cipher) {
            return Err(ChannelError::NoCipher(self.config.ciphers.join(", ")));
        }
        let master = PublicKey::from_pem(&accepted.public_key)?;
        let is_known = known.as_ref() == Some(&master);
        let voucher = accepted.public_key_signature.as_deref();
        self.check_voucher(&accepted.public_key, voucher, request.signature, is_known)?;
        match &known {
            Some(_) if is_known || self.config.verify_master_pubkey_sign => {}
            Some(_) => return Err(self.changed_master()),
            None => self.check_fingerprint(&master)?,
        }
        // The token was sealed to the key that is known: a master with another one cannot return it.
        let secret = secret.filter(|_| is_known);
        master.verify(load, sig, request.signature)?;
        let publish = self.private_key.decrypt(&accepted.publish_key, request.encryption)?;
        if let Some(secret) = &secret {
            let returned = accepted.token.and_then(|token| self.private_key.decrypt(&token, request.encryption).ok());
            if !returned.is_some_and(|returned| token::constant_time_eq(returned, secret)) {
                return Err(ChannelError::WrongToken);
            }
        }
        let digest = token::hex(Sha256::digest(&publish));
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
            // The first contact: this is the master from now on.
            self.keep_master_key(master)?;
        }
        Ok(Keys { session, publish, publish_port: accepted.publish_port })
    }

    fn changed_master(&self) -> ChannelError {
        ChannelError::ChangedMaster(self.config.pki_dir.join(MASTER_KEY))
    }

    /// Whether what vouches for the master's key does so, if anything must.
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
        if let Some(kept) = &self.master {
            return Ok(kept.read().clone());
        }
        let pem = files::read_if_exists(self.config.pki_dir.join(MASTER_KEY))?;
        Ok(pem.map(|pem| PublicKey::from_pem(&pem)).transpose()?)
    }

    fn keep_master_key(&self, master: PublicKey) -> Result<(), ChannelError> {
        tracing::info!(fingerprint = %master.fingerprint(), "this is the master's key from now on");
        match &self.master {
            Some(kept) => *kept.write() = Some(master),
            None => files::write_atomic(self.config.pki_dir.join(MASTER_KEY), master.to_pem().as_bytes(), 0o644)?,
        }
        Ok(())
    }

    fn check_fingerprint(&self, master: &PublicKey) -> Result<(), ChannelError> {
        let Some(expected) = self.config.master_finger.clone().filter(|finger| !finger.is_empty()) else {
            return Ok(());
        };
        let found = master.fingerprint();
        if token::constant_time_eq(expected.to_lowercase(), &found) {
            return Ok(());
        }
        Err(ChannelError::WrongFingerprint { expected, found })
    }

    /// Sends a command to the master and waits for what it says. A master that does not know the session
    /// any more is authenticated with again, once.
    pub async fn request(self: &Arc<Self>, load: Map) -> Result<Value, ChannelError> {
        match self.request_once(&load).await {
            Err(ChannelError::Refused | ChannelError::Crypt(_)) => {
                self.authenticate().await?;
                self.request_once(&load).await
            }
            result => result,
        }
    }

    async fn request_once(self: &Arc<Self>, load: &Map) -> Result<Value, ChannelError> {
        let keys = self.keys.read().clone().ok_or(ChannelError::Refused)?;
        let mut load = load.clone();
        let nonce = token::nonce();
        load.insert("nonce".into(), nonce.as_str().into());
        load.insert("id".into(), (&self.id).into());
        match keys.session.cipher() {
            Cipher::Aes256Gcm => {
                let serial = self.serial.fetch_add(1, Ordering::Relaxed) + 1;
                load.insert("serial".into(), serial.into());
            }
            Cipher::AesCbcHmac => {
                load.insert("ts".into(), jiff::Timestamp::now().as_second().into());
                load.insert("tok".into(), self.private_key.sign_x931(b"salt")?.into());
            }
        }
        let sealed = keys.session.seal(&msgpack::pack_map(&load), None, &purpose::request(&self.id));
        let envelope = encrypted(&self.id, sealed, &self.config.encryption_algorithm, &self.config.signing_algorithm);
        let timeout = Duration::from_secs(self.config.request_timeout.max(1));
        let answer = self.client.request(envelope, timeout).await?;
        let sealed = match msgpack::unpack(&answer).map_err(WireError::from)? {
            Value::Bytes(sealed) => sealed,
            Value::Map(private) if keys.session.cipher() == Cipher::AesCbcHmac && private::is_private(&private) => {
                let this = Arc::clone(self);
                let opened = tokio::task::spawn_blocking(move || this.open_private(&private, &nonce)).await;
                return opened.map_err(|_| ChannelError::Refused)?;
            }
            // Such as "bad load".
            _ => return Err(ChannelError::Refused),
        };
        let plain = keys.session.open(&sealed, Some(&nonce), &purpose::reply(&self.id))?;
        Ok(msgpack::unpack(&plain).map_err(WireError::from)?)
    }

    /// Opens a reply that the master has sealed to this minion's key alone.
    fn open_private(&self, answer: &Map, nonce: &str) -> Result<Value, ChannelError> {
        let encryption = self.config.encryption_algorithm.parse()?;
        let signature = self.config.signing_algorithm.parse()?;
        let master = self.master_key()?.ok_or(CryptError::BadSignature)?;
        Ok(private::open(answer, nonce, &self.private_key, &master, encryption, signature)?)
    }

    /// Opens a publish: the payload of what came from the publish port.
    pub fn open_publish(&self, payload: &[u8]) -> Result<Publication, ChannelError> {
        let keys = self.keys.read().clone().ok_or(ChannelError::Refused)?;
        let envelope = msgpack::unpack_map(payload).map_err(WireError::from)?;
        let load = envelope.get("load").and_then(Value::as_bytes).ok_or(WireError::Missing("load"))?;
        let plain = keys.publish.open(load, None, purpose::PUBLISH)?;
        match envelope.get("sig").and_then(Value::as_bytes) {
            Some(sig) => {
                let algorithm = envelope.get("sig_algo").and_then(Value::as_str).unwrap_or_default().parse()?;
                let master = self.master_key()?.ok_or(CryptError::BadSignature)?;
                master.verify(load, sig, algorithm)?;
            }
            // Every minion has the key of the publish stream.
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
