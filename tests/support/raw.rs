//! A minion with arbitrary messages: the test has the keys of its session.

use brine_crypt::{Cipher, EncryptionAlgorithm, PrivateKey, PublicKey, Session, SignatureAlgorithm, token};
use brine_ids::MinionId;
use brine_value::{Map, Value, map, msgpack};
use brine_wire::{AuthReply, AuthRequest, Binding, Envelope, PROTOCOL_VERSION, private, purpose};
use brine_zmtp::{Limits, RequestClient};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::support::{System, TIMEOUT};

/// Sends a request to the master and returns its reply.
pub type Ask = Box<dyn Fn(Vec<u8>) -> BoxFuture<'static, Bytes> + Send + Sync>;

pub struct Raw {
    pub id: MinionId,
    pub key: PrivateKey,
    pub session: Session,
    pub publish: Session,
    master: PublicKey,
    ask: Ask,
    serial: i64,
}

impl Raw {
    /// Joins a master that accepts every key.
    pub async fn join(system: &System, id: &str, cipher: Cipher) -> Self {
        let client = RequestClient::new(system.request_endpoint(), Limits::default());
        let ask = move |request: Vec<u8>| {
            let client = client.clone();
            async move { client.request(request, TIMEOUT).await.unwrap() }.boxed()
        };
        Self::join_by(Box::new(ask), id, PrivateKey::generate(2048).unwrap(), cipher).await
    }

    /// Joins with this key, over this transport.
    pub async fn join_by(ask: Ask, id: &str, key: PrivateKey, cipher: Cipher) -> Self {
        let request = AuthRequest {
            id: id.parse().unwrap(),
            public_key: key.public().to_pem(),
            nonce: token::nonce(),
            encryption: EncryptionAlgorithm::default(),
            signature: SignatureAlgorithm::default(),
            token: None,
            is_token_optional: false,
            ciphers: vec![cipher],
            autosign_grains: Map::new(),
        };
        let answer = ask(Envelope::clear(request.to_map())).await;
        let signed = msgpack::unpack_map(&answer).unwrap();
        let inner = msgpack::unpack_map(signed["load"].as_bytes().unwrap()).unwrap();
        let reply = AuthReply::from_map(&inner, &Binding::of(&request.to_map()).unwrap()).unwrap();
        let AuthReply::Accepted(accepted) = reply else { panic!("{id} is not accepted: {reply:?}") };
        let opened = |sealed: &[u8]| {
            let text = String::from_utf8(key.decrypt(sealed, request.encryption).unwrap()).unwrap();
            Session::from_key_text(&text).unwrap()
        };
        Raw {
            session: opened(&accepted.session_key),
            publish: opened(&accepted.publish_key),
            id: request.id,
            key,
            master: PublicKey::from_pem(&accepted.public_key).unwrap(),
            ask,
            serial: 0,
        }
    }

    /// Returns a load with all proofs of its sender.
    pub fn proven(&mut self, mut load: Map) -> Map {
        self.serial += 1;
        load.extend(map! {
            "id" => &self.id,
            "nonce" => token::nonce(),
            "serial" => self.serial,
            "ts" => jiff::Timestamp::now().as_second(),
            "tok" => self.key.sign_x931(b"salt").unwrap(),
        });
        load
    }

    /// Returns an envelope with this load, encrypted for the requests of this minion.
    pub fn sealed(&self, load: &Map) -> Map {
        let sealed = self.session.seal(&msgpack::pack_map(load), None, &purpose::request(&self.id));
        map! {"enc" => "aes", "load" => sealed, "version" => PROTOCOL_VERSION, "id" => &self.id}
    }

    /// Sends an envelope. Returns the master's reply, decrypted if it is for this nonce.
    pub async fn send(&self, envelope: &Map, nonce: &str) -> Value {
        let answer = (self.ask)(msgpack::pack_map(envelope)).await;
        match msgpack::unpack(&answer).unwrap() {
            Value::Bytes(sealed) => {
                let plain = self.session.open(&sealed, Some(nonce), &purpose::reply(&self.id)).unwrap();
                msgpack::unpack(&plain).unwrap()
            }
            Value::Map(answer) if private::is_private(&answer) => "a private reply".into(),
            other => other,
        }
    }

    /// Sends a load and returns the master's reply.
    pub async fn ask(&mut self, load: Map) -> Value {
        let load = self.proven(load);
        self.send(&self.sealed(&load), load["nonce"].as_str().unwrap()).await
    }

    /// Returns the master's reply to a load whose reply is encrypted for this minion's key, such as a pillar.
    pub async fn private(&mut self, load: Map) -> Value {
        let load = self.proven(load);
        let nonce = load["nonce"].as_str().unwrap().to_owned();
        let answer = (self.ask)(msgpack::pack_map(&self.sealed(&load))).await;
        match msgpack::unpack(&answer).unwrap() {
            Value::Bytes(sealed) => {
                let plain = self.session.open(&sealed, Some(&nonce), &purpose::reply(&self.id)).unwrap();
                msgpack::unpack(&plain).unwrap()
            }
            Value::Map(answer) => {
                let (encryption, signature) = (EncryptionAlgorithm::default(), SignatureAlgorithm::default());
                private::open(&answer, &nonce, &self.key, &self.master, encryption, signature).unwrap()
            }
            other => other,
        }
    }
}
