//! Admission: minions authenticate with their keys and receive session keys.

mod auth_queue;
pub mod identity;
pub mod publish_keys;
mod rate_limit;
pub mod sessions;

use std::sync::Arc;
use std::time::Duration;

use brine_config::{InvalidOption, MasterConfig};
use brine_crypt::{Cipher, CryptError, PublicKey};
use brine_ids::MinionId;
use brine_master_store::events::Events;
use brine_master_store::keys::{Decision, KeyState};
use brine_master_store::metrics;
use brine_master_store::storage::Storage;
use brine_runtime::executors::{Blocking, Executor};
use brine_value::{Map, Value, map, msgpack};
use brine_wire::{Accepted, AuthRefusal, AuthReply, AuthRequest, Binding, deferral};
use brine_zmtp::Peer;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use auth_queue::AuthQueue;
use identity::Identity;
use rate_limit::AuthLimit;
use sessions::{Opened, Sessions};

/// The capacity of the executor's queue, for authentications and for requests of minions of other cluster members.
const QUEUE: usize = 1024;

/// The secrets that the admission of minions needs.
pub struct Secrets {
    /// The master's own keys.
    pub identity: Arc<Identity>,
    /// The session keys of minions.
    pub sessions: Arc<Sessions>,
}

/// Authenticates minions.
pub struct Admission {
    config: Arc<MasterConfig>,
    /// The allowed ciphers.
    ciphers: Arc<[Cipher]>,
    storage: Blocking<Storage>,
    /// Reads keys and signs replies. It has few threads, because AWS-LC allocates memory for each. It is separate from
    /// the executor that encrypts publishes, so that a hanging disk does not stop those.
    executor: Executor,
    events: Events,
    secrets: Secrets,
    limit: AuthLimit,
    auth_queue: AuthQueue,
}

impl Admission {
    /// Creates the admission of a master.
    pub fn new(
        config: Arc<MasterConfig>,
        ciphers: Arc<[Cipher]>,
        storage: Blocking<Storage>,
        events: Events,
        secrets: Secrets,
    ) -> Self {
        let limit = AuthLimit::new(config.auth_rate_limit);
        // One thread more than processors, since one may be reading its key from disk.
        let concurrency = 1 + std::thread::available_parallelism().map_or(2, usize::from);
        let (executor, auth_queue) = (Executor::new("admission", concurrency, QUEUE), AuthQueue::new(concurrency));
        Admission { config, ciphers, storage, executor, events, secrets, limit, auth_queue }
    }

    /// Returns the master's own keys.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.secrets.identity
    }

    /// Returns the session keys of minions.
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.secrets.sessions
    }

    /// Decrypts a request of a minion that has authenticated with another member of the cluster, as happens behind a
    /// load balancer: it sends each connection of Salt's minions to a different member. Returns `None` without a
    /// cluster, if the address exceeds its rate limit, or if the request does not match an accepted key.
    pub async fn open_shared(&self, peer: &Peer, id: &MinionId, sealed: Bytes) -> Option<Opened> {
        let sessions = self.sessions();
        if !sessions.are_shared() || !self.ciphers.contains(&Cipher::AesCbcHmac) {
            return None;
        }
        self.limit.admit(&peer.address).await.ok()?;
        let minion = id.clone();
        let key = self.storage.run(move |storage| storage.keys.get(KeyState::Accepted, &minion)).await;
        let public_key = PublicKey::from_pem(&key.ok()?.ok()??).ok()?;
        let (sessions, id) = (Arc::clone(sessions), id.clone());
        self.executor.run(move |_| sessions.open_shared(&id, Arc::new(public_key), &sealed)).await.ok()?.ok()
    }

    /// Answers an `_auth` request with a packed, signed reply.
    pub async fn authenticate(self: &Arc<Self>, peer: &Peer, request: AuthRequest, binding: Binding) -> Vec<u8> {
        // Only Brine's minions offer ciphers, and they support deferral.
        let supports_deferral = !request.ciphers.is_empty();
        if let Err(after) = self.limit.admit(&peer.address).await {
            if supports_deferral {
                return deferred(&request, after);
            }
            metrics::AUTHENTICATIONS_REFUSED.add(1);
            tracing::warn!(peer = %peer.address, minion = ?request.id.as_str(), "authentication refused: the address exceeds auth_rate_limit");
            return clear(map! {"ret" => false}.into());
        }
        let permit = match self.auth_queue.acquire(supports_deferral).await {
            Ok(permit) => permit,
            Err(after) => return deferred(&request, after),
        };
        let Ok(public_key) = PublicKey::from_pem(&request.public_key) else {
            metrics::AUTHENTICATIONS_REFUSED.add(1);
            tracing::warn!(minion = ?request.id.as_str(), "authentication refused: the public key is invalid: expected the PEM text of an RSA key");
            self.publish_auth(&request, false, "error", None).await;
            return clear(map! {"ret" => false}.into());
        };
        let (public_key, request) = (Arc::new(public_key), Arc::new(request));
        let work = (Arc::clone(self), Arc::clone(&request), Arc::clone(&public_key));
        // In one job: each handover to another thread would cost a tenth of a signature.
        let answered = self.executor.run(move |block| {
            let (admission, request, public_key) = work;
            let decision = admission.decide(admission.storage.get(block), &request, &public_key);
            (decision, admission.answer(decision, &request, &binding, &public_key))
        });
        let (decision, reply) = match answered.await {
            Ok((decision, Ok(reply))) => (decision, reply),
            Ok((decision, Err(error))) => {
                tracing::error!(minion = %request.id, %error, "answering an authentication failed");
                (decision, clear(map! {"ret" => false}.into()))
            }
            Err(error) => {
                tracing::error!(minion = %request.id, %error, "answering an authentication failed");
                (Decision::Reject, clear(map! {"ret" => false}.into()))
            }
        };
        drop(permit);
        if decision == Decision::Accept {
            // The minion's requests use other connections.
            peer.remember_address();
        }
        self.publish_auth(&request, decision.result(), decision.act(), Some(&public_key)).await;
        reply
    }

    /// Decides about a minion. Blocks on the disk.
    fn decide(&self, storage: &Storage, request: &AuthRequest, public_key: &PublicKey) -> Decision {
        let decided = storage.keys.decide(&self.config, &request.id, public_key, &request.autosign_grains);
        decided.unwrap_or_else(|error| {
            tracing::error!(minion = %request.id, %error, "reading or storing a key failed");
            Decision::Reject
        })
    }

    /// Returns the signed reply to a minion. Takes about as long as an RSA signature.
    fn answer(
        &self,
        decision: Decision,
        request: &AuthRequest,
        binding: &Binding,
        public_key: &Arc<PublicKey>,
    ) -> Result<Vec<u8>, CryptError> {
        let verdict = match decision {
            Decision::Accept => match self.choose_cipher(&request.ciphers) {
                Some(cipher) => return self.accept(request, binding, Arc::clone(public_key), cipher),
                None => AuthRefusal::NoCipher,
            },
            Decision::Pend => AuthRefusal::Pending,
            Decision::Reject | Decision::Denied => AuthRefusal::Rejected,
            Decision::Full => AuthRefusal::Full,
        };
        metrics::AUTHENTICATIONS_REFUSED.add(1);
        let minion = &request.id;
        if verdict == AuthRefusal::NoCipher {
            tracing::warn!(%minion, "authentication refused: the minion offers no cipher that `ciphers` allows");
        } else {
            tracing::info!(%minion, act = decision.act(), "minion not authenticated");
        }
        self.sign_reply(request, binding, &AuthReply::Refused(verdict))
    }

    fn accept(
        &self,
        request: &AuthRequest,
        binding: &Binding,
        public_key: Arc<PublicKey>,
        cipher: Cipher,
    ) -> Result<Vec<u8>, CryptError> {
        let publish_keys = self.secrets.sessions.publish_keys();
        let publish_key = publish_keys.of(cipher).key_text();
        // A token that cannot be decrypted is encrypted for another key: the minion expects another master, and detects
        // this by this master's public key.
        let token = request.token.as_ref().filter(|_| !request.is_token_optional).and_then(|token| {
            let log = |error: &CryptError| {
                tracing::warn!(minion = %request.id, %error, "decrypting a minion's token failed: it expects another master");
            };
            self.secrets.identity.private_key.decrypt(token, request.encryption).inspect_err(log).ok()
        });
        let token = token.map(|token| public_key.encrypt(&token, request.encryption)).transpose()?;
        let publish = public_key.encrypt(publish_key.as_bytes(), request.encryption)?;
        let signature = publish_keys.signature(cipher, |key| {
            let digest: String = brine_digest::hex(Sha256::digest(key.as_bytes()));
            self.secrets.identity.private_key.sign_x931(digest.as_bytes())
        })?;
        let session = self.secrets.sessions.begin(&request.id, Arc::clone(&public_key), cipher);
        let reply = AuthReply::Accepted(Box::new(Accepted {
            public_key: self.secrets.identity.public_key_pem.clone(),
            public_key_signature: self.secrets.identity.signature(request.signature)?,
            publish_port: self.config.publish_port,
            publish_key: publish,
            token,
            session_key: public_key.encrypt(session.key_text().as_bytes(), request.encryption)?,
            signature,
            cipher,
        }));
        metrics::AUTHENTICATIONS.add(1);
        tracing::info!(minion = %request.id, %cipher, "minion authenticated");
        self.sign_reply(request, binding, &reply)
    }

    /// Returns the first cipher that the minion offers and the configuration allows. Minions without an offer use Salt's.
    fn choose_cipher(&self, offered: &[Cipher]) -> Option<Cipher> {
        let offered = if offered.is_empty() { &[Cipher::AesCbcHmac][..] } else { offered };
        offered.iter().copied().find(|cipher| self.ciphers.contains(cipher))
    }

    fn sign_reply(&self, request: &AuthRequest, binding: &Binding, reply: &AuthReply) -> Result<Vec<u8>, CryptError> {
        let load = msgpack::pack_map(&reply.to_map(binding));
        let sig = self.secrets.identity.private_key.sign(&load, request.signature)?;
        Ok(msgpack::pack_map(&map! {"enc" => "clear", "load" => load, "sig" => sig}))
    }

    async fn publish_auth(&self, request: &AuthRequest, result: bool, act: &str, public_key: Option<&PublicKey>) {
        if !self.config.auth_events {
            return;
        }
        // The key is encoded again: text around the key must not reach the journal.
        let public_key = public_key.map(PublicKey::to_pem).unwrap_or_default();
        let mut body: Map =
            map! {"result" => result, "act" => act, "id" => &request.id, "pub" => public_key.trim_end()};
        let has_grains = self.config.auth_events_autosign_grains.iter().any(|listed| listed == act);
        if has_grains && !request.autosign_grains.is_empty() {
            body.insert("autosign_grains".into(), request.autosign_grains.clone().into());
        }
        self.events.fire("salt/auth", &body).await;
    }
}

/// Returns the reply that tells a minion when to retry.
fn deferred(request: &AuthRequest, after: Duration) -> Vec<u8> {
    metrics::AUTHENTICATIONS_DEFERRED.add(1);
    tracing::debug!(minion = ?request.id.as_str(), ?after, "authentication deferred");
    clear(deferral(after).into())
}

/// Packs an unencrypted reply.
pub fn clear(load: Value) -> Vec<u8> {
    msgpack::pack_map(&map! {"enc" => "clear", "load" => load})
}

/// Parses the option `ciphers`.
///
/// # Errors
/// A name is unknown.
pub fn ciphers(names: &[String]) -> Result<Vec<Cipher>, InvalidOption> {
    let bad = |error: CryptError| InvalidOption { option: "ciphers", reason: error.to_string() };
    names.iter().map(|name| name.parse().map_err(bad)).collect()
}

#[cfg(test)]
mod tests;
