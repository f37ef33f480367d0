//! Authentication: a minion shows its key, the key store decides, and who may come in gets keys.

use std::sync::Arc;

use brine_crypt::{Cipher, CryptError, PublicKey};
use brine_value::{Map, Value, map, msgpack};
use brine_wire::{Accepted, AuthReply, AuthRequest, Binding, Verdict};
use brine_zmtp::Peer;
use sha2::{Digest, Sha256};

use crate::Shared;
use crate::keys::Decision;
use crate::metrics;

impl Shared {
    /// Answers an `_auth` request: the signed reply, packed.
    pub(crate) async fn authenticate(self: &Arc<Self>, peer: &Peer, request: AuthRequest, binding: Binding) -> Vec<u8> {
        if !self.auth_limit.admit(&peer.address).await {
            metrics::AUTHENTICATIONS_REFUSED.add(1);
            tracing::warn!(peer = %peer.address, minion = ?request.id.as_str(), "authentication refused: the address exceeds auth_rate_limit");
            return clear(map! {"ret" => false}.into());
        }
        let Ok(public_key) = PublicKey::from_pem(&request.public_key) else {
            metrics::AUTHENTICATIONS_REFUSED.add(1);
            tracing::warn!(minion = ?request.id.as_str(), "authentication refused: the public key is invalid: expected the PEM text of an RSA key");
            self.fire_auth(&request, false, "error", None).await;
            return clear(map! {"ret" => false}.into());
        };
        let public_key = Arc::new(public_key);
        let (shared, id, key) = (Arc::clone(self), request.id.clone(), Arc::clone(&public_key));
        let grains = request.autosign_grains.clone();
        let decided = self.disk.run(move |disk| disk.keys.decide(&shared.config, &id, &key, &grains)).await;
        let decision = match decided {
            Ok(Ok(decision)) => decision,
            Ok(Err(error)) => {
                tracing::error!(minion = %request.id, %error, "reading or storing a key failed");
                Decision::Reject
            }
            Err(error) => {
                tracing::error!(minion = %request.id, %error, "reading or storing a key failed");
                Decision::Reject
            }
        };
        let act = decision.act();
        let verdict = match decision {
            Decision::Accept => None,
            Decision::Pend => Some(Verdict::Pending),
            Decision::Reject | Decision::Denied => Some(Verdict::Rejected),
            Decision::Full => Some(Verdict::Full),
        };
        if verdict.is_none() {
            // The minion's requests come on other connections.
            peer.remember_address();
        }
        self.fire_auth(&request, decision.result(), act, Some(&public_key)).await;
        let shared = Arc::clone(self);
        let made = move || match verdict {
            Some(verdict) => {
                metrics::AUTHENTICATIONS_REFUSED.add(1);
                tracing::info!(minion = %request.id, act, "minion not authenticated");
                shared.sign_reply(&request, &binding, &AuthReply::Refused(verdict))
            }
            None => {
                if let Some(cipher) = shared.choose_cipher(&request.ciphers) {
                    shared.let_in(&request, &binding, public_key, cipher)
                } else {
                    metrics::AUTHENTICATIONS_REFUSED.add(1);
                    let minion = &request.id;
                    tracing::warn!(%minion, "authentication refused: the minion offers no cipher that `ciphers` allows");
                    shared.sign_reply(&request, &binding, &AuthReply::Refused(Verdict::NoCipher))
                }
            }
        };
        match self.executors.crypto.run(move |_| made()).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => {
                tracing::error!(%error, "answering an authentication failed");
                clear(map! {"ret" => false}.into())
            }
            Err(error) => {
                tracing::error!(%error, "answering an authentication failed");
                clear(map! {"ret" => false}.into())
            }
        }
    }

    fn let_in(
        &self,
        request: &AuthRequest,
        binding: &Binding,
        public_key: Arc<PublicKey>,
        cipher: Cipher,
    ) -> Result<Vec<u8>, CryptError> {
        let publish_keys = self.sessions.publish_keys();
        let publish_key = publish_keys.of(cipher).key_text();
        // A token that is sealed to another key is from a minion that knows another master here: it will see by
        // this one's public key what has happened.
        let token = request.token.as_ref().and_then(|token| {
            let told = |error: &CryptError| {
                tracing::warn!(minion = %request.id, %error, "a minion's token is sealed to another key");
            };
            self.identity.private_key.decrypt(token, request.encryption).inspect_err(told).ok()
        });
        let token = token.map(|token| public_key.encrypt(&token, request.encryption)).transpose()?;
        let publish = public_key.encrypt(publish_key.as_bytes(), request.encryption)?;
        let signature = publish_keys.signature(cipher, |key| {
            let digest: String = brine_digest::hex(Sha256::digest(key.as_bytes()));
            self.identity.private_key.sign_x931(digest.as_bytes())
        })?;
        let session = self.sessions.begin(&request.id, Arc::clone(&public_key), cipher);
        let reply = AuthReply::Accepted(Box::new(Accepted {
            public_key: self.identity.public_key_pem.clone(),
            public_key_signature: self.identity.signature(request.signature)?,
            publish_port: self.config.publish_port,
            publish_key: publish,
            token,
            session_key: public_key.encrypt(session.key_text().as_bytes(), request.encryption)?,
            signature,
            cipher,
        }));
        metrics::AUTHENTICATIONS.add(1);
        tracing::info!(minion = %request.id, %cipher, "a minion is authenticated");
        self.sign_reply(request, binding, &reply)
    }

    /// The first cipher that the minion offers and the configuration allows. Who offers none has Salt's.
    fn choose_cipher(&self, offered: &[Cipher]) -> Option<Cipher> {
        let offered = if offered.is_empty() { &[Cipher::AesCbcHmac][..] } else { offered };
        offered.iter().copied().find(|cipher| self.ciphers.contains(cipher))
    }

    fn sign_reply(&self, request: &AuthRequest, binding: &Binding, reply: &AuthReply) -> Result<Vec<u8>, CryptError> {
        let load = msgpack::pack_map(&reply.to_map(binding));
        let sig = self.identity.private_key.sign(&load, request.signature)?;
        Ok(msgpack::pack_map(&map! {"enc" => "clear", "load" => load, "sig" => sig}))
    }

    async fn fire_auth(&self, request: &AuthRequest, result: bool, act: &str, public_key: Option<&PublicKey>) {
        if !self.config.auth_events {
            return;
        }
        // Encoded anew: what the peer sent around its key stays out of the journal.
        let public_key = public_key.map(PublicKey::to_pem).unwrap_or_default();
        let mut body: Map =
            map! {"result" => result, "act" => act, "id" => &request.id, "pub" => public_key.trim_end()};
        let tells_grains = self.config.auth_events_autosign_grains.iter().any(|told| told == act);
        if tells_grains && !request.autosign_grains.is_empty() {
            body.insert("autosign_grains".into(), request.autosign_grains.clone().into());
        }
        self.fire("salt/auth", &body).await;
    }
}

/// A reply in clear.
pub(crate) fn clear(load: Value) -> Vec<u8> {
    msgpack::pack_map(&map! {"enc" => "clear", "load" => load})
}
