//! Authentication: a minion shows its key, the key store decides, and who may come in gets keys.

use std::sync::Arc;

use brine_core::crypt::{Cipher, CryptError, PublicKey};
use brine_core::transport::Peer;
use brine_core::value::msgpack;
use brine_core::wire::{Accepted, AuthReply, AuthRequest, Binding, Verdict};
use brine_core::{Map, Value, map, metrics};
use sha2::{Digest, Sha256};

use crate::Shared;
use crate::keys::Decision;

impl Shared {
    /// Answers an `_auth` request: the signed reply, packed.
    pub(crate) async fn authenticate(self: &Arc<Self>, peer: &Peer, request: AuthRequest, binding: Binding) -> Vec<u8> {
        let Ok(public_key) = PublicKey::from_pem(&request.public_key) else {
            metrics::AUTHENTICATIONS_REFUSED.add(1);
            tracing::warn!(minion = %request.id, "an authentication shows no usable public key");
            self.fire_auth(&request, false, "error", None).await;
            return clear(map! {"ret" => false}.into());
        };
        let decision = match self.keys.decide(&self.config, &request.id, &request.public_key, &request.autosign_grains)
        {
            Ok(decision) => decision,
            Err(error) => {
                tracing::error!(minion = %request.id, %error, "a key could not be looked up or kept");
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
        self.fire_auth(&request, decision.result(), act, Some(&request.public_key)).await;
        let shared = Arc::clone(self);
        let made = move || match verdict {
            Some(verdict) => {
                metrics::AUTHENTICATIONS_REFUSED.add(1);
                tracing::info!(minion = %request.id, act, "a minion was not let in");
                shared.sign_reply(&request, &binding, &AuthReply::Refused(verdict))
            }
            None => {
                if let Some(cipher) = shared.choose_cipher(&request.ciphers) {
                    shared.let_in(&request, &binding, public_key, cipher)
                } else {
                    metrics::AUTHENTICATIONS_REFUSED.add(1);
                    let minion = &request.id;
                    tracing::warn!(%minion, "a minion was not let in: it can none of the ciphers that `ciphers` allows");
                    shared.sign_reply(&request, &binding, &AuthReply::Refused(Verdict::NoCipher))
                }
            }
        };
        // RSA takes milliseconds: not on the threads that serve sockets.
        match tokio::task::spawn_blocking(made).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => {
                tracing::error!(%error, "an authentication could not be answered");
                clear(map! {"ret" => false}.into())
            }
            Err(_) => clear(map! {"ret" => false}.into()),
        }
    }

    fn let_in(
        &self,
        request: &AuthRequest,
        binding: &Binding,
        public_key: PublicKey,
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
            let digest: String = brine_core::crypt::token::hex(Sha256::digest(key.as_bytes()));
            self.identity.private_key.sign_x931(digest.as_bytes())
        })?;
        let public_key = Arc::new(public_key);
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

    async fn fire_auth(&self, request: &AuthRequest, result: bool, act: &str, public_key: Option<&str>) {
        if !self.config.auth_events {
            return;
        }
        // What is no key is told empty: it is a stranger's text.
        let public_key = public_key.unwrap_or_default().trim_end();
        let mut body: Map = map! {"result" => result, "act" => act, "id" => &request.id, "pub" => public_key};
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
