//! Requests of a session: encrypts, signs on demand and sends them, and decrypts the replies.
//!
//! A request reaches the master at least once or fails. It is sent again, encrypted anew, after the session was
//! renewed, and once if the connection ended before the reply, as Salt's minions do: an event may then be published
//! twice, and a return may arrive twice. Requests that start something on other minions or on the master are only
//! repeated if the master has refused them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brine_crypt::{Cipher, token};
use brine_value::{Map, Value, msgpack};
use brine_wire::{WireError, encrypted, private, purpose, signed};
use brine_zmtp::TransportError;
use bytes::Bytes;

use super::{Channel, ChannelError, Keys};

/// Commands that must not be repeated.
const NOT_REPEATED: &[&str] = &["minion_pub", "minion_publish", "minion_runner"];

impl Channel {
    /// Sends a command to the master and returns its reply. The session is renewed once if the master no longer
    /// recognises it.
    pub async fn request(self: &Arc<Self>, load: Map) -> Result<Value, ChannelError> {
        self.request_within(load, self.config.request_timeout.pause()).await
    }

    /// Sends a command as [`Channel::request`] does, with its own timeout.
    pub async fn request_within(self: &Arc<Self>, load: Map, timeout: Duration) -> Result<Value, ChannelError> {
        match self.request_in_session(&load, timeout).await {
            Err(ChannelError::Transport(error @ TransportError::Unanswered { .. })) if may_be_repeated(&load) => {
                tracing::debug!(%error, "sending a request again");
                self.request_in_session(&load, timeout).await
            }
            result => result,
        }
    }

    async fn request_in_session(self: &Arc<Self>, load: &Map, timeout: Duration) -> Result<Value, ChannelError> {
        let keys = self.keys.read().clone();
        let used = keys.as_ref().map_or(0, |keys| keys.generation);
        let answered = match keys {
            Some(keys) => self.request_once(keys, load, timeout).await,
            None => Err(ChannelError::Refused),
        };
        match answered {
            Err(ChannelError::Refused | ChannelError::Crypt(_)) => {
                self.renew(used).await?;
                let keys = self.keys.read().clone().ok_or(ChannelError::Refused)?;
                self.request_once(keys, load, timeout).await
            }
            result => result,
        }
    }

    async fn request_once(
        self: &Arc<Self>,
        keys: Arc<Keys>,
        load: &Map,
        timeout: Duration,
    ) -> Result<Value, ChannelError> {
        let mut load = load.clone();
        let nonce = token::nonce();
        load.insert("nonce".into(), nonce.as_str().into());
        load.insert("id".into(), (&self.id).into());
        if let Some(token) = &keys.token {
            load.insert("ts".into(), jiff::Timestamp::now().as_second().into());
            load.insert("tok".into(), token.clone().into());
        } else {
            let serial = keys.serial.fetch_add(1, Ordering::Relaxed) + 1;
            load.insert("serial".into(), serial.into());
        }
        if self.config.minion_sign_messages {
            load = self.sign(load).await?;
        }
        let sealed = keys.session.seal(&msgpack::pack_map(&load), None, &purpose::request(&self.id));
        let envelope = encrypted(&self.id, sealed, &self.config.encryption_algorithm, &self.config.signing_algorithm);
        let answer = self.client().request(envelope, timeout).await?;
        let sealed = match msgpack::unpack(&answer).map_err(WireError::from)? {
            Value::Bytes(sealed) => sealed,
            Value::Map(private) if keys.session.cipher() == Cipher::AesCbcHmac && private::is_private(&private) => {
                let this = Arc::clone(self);
                return self.crypto.run(move |_| this.open_private(&private, &nonce, &keys)).await?;
            }
            // The reply is an error such as "bad load".
            _ => return Err(ChannelError::Refused),
        };
        let plain = keys.session.open(&sealed, Some(&nonce), &purpose::reply(&self.id))?;
        Ok(msgpack::unpack(&plain).map_err(WireError::from)?)
    }

    /// Signs a load with the minion's key, on an executor.
    async fn sign(self: &Arc<Self>, mut load: Map) -> Result<Map, ChannelError> {
        let this = Arc::clone(self);
        let signed = self.crypto.run(move |_| -> Result<Map, ChannelError> {
            signed::sign(&mut load, &this.private_key, this.config.signing_algorithm.parse()?)?;
            Ok(load)
        });
        signed.await?
    }

    /// Sends a repeatable request, and repeats it if the connection ended before the reply.
    pub(super) async fn send(&self, request: Bytes, timeout: Duration) -> Result<Bytes, TransportError> {
        match self.client().request(request.clone(), timeout).await {
            Err(TransportError::Unanswered { .. }) => self.client().request(request, timeout).await,
            result => result,
        }
    }

    /// Decrypts a reply that is encrypted for this minion's key only.
    fn open_private(&self, answer: &Map, nonce: &str, keys: &Keys) -> Result<Value, ChannelError> {
        let encryption = self.config.encryption_algorithm.parse()?;
        let signature = self.config.signing_algorithm.parse()?;
        Ok(private::open(answer, nonce, &self.private_key, &keys.master, encryption, signature)?)
    }
}

fn may_be_repeated(load: &Map) -> bool {
    !load.get("cmd").and_then(Value::as_str).is_some_and(|cmd| NOT_REPEATED.contains(&cmd))
}
