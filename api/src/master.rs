//! The API's client of the local master: requests in the name of users, and the API's own calls.
//!
//! All of them need the key of the REST API (`.salt-api.key` in `cachedir`). With it the API names the address of each
//! user to the master. It permits nothing else than what the master lists: the users' own proofs authorise their
//! requests.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brine_client::{ClientError, Events, MasterClient, Published, REQUEST_TIME, Registry};
use brine_config::MasterConfig;
use brine_function::Args;
use brine_system::files;
use brine_value::{Map, Value};
use brine_wire::{Call, Proof, PublishRequest, TokenRequest};
use brine_zmtp::TransportError;
use parking_lot::Mutex;

use crate::error::MasterError;

/// The user of the API's own calls.
const API_USER: &str = "salt-api";

/// A client of the local master.
pub(crate) struct Master {
    client: MasterClient,
    key: ApiKey,
}

/// The key of the REST API, which its master creates.
struct ApiKey {
    path: PathBuf,
    read: Mutex<Option<Arc<str>>>,
}

impl ApiKey {
    /// Returns the key. The file is read at the first request: the master may start later.
    fn get(&self) -> Result<Arc<str>, MasterError> {
        if let Some(key) = self.read.lock().clone() {
            return Ok(key);
        }
        let no_key = |error: &dyn std::fmt::Display| MasterError::NoKey(error.to_string());
        let key = files::read_if_exists(&self.path).map_err(|error| no_key(&error))?;
        let missing = format!("{} is missing: the master creates it when it starts", self.path.display());
        let key: Arc<str> = key.filter(|key| !key.is_empty()).ok_or_else(|| no_key(&missing))?.into();
        *self.read.lock() = Some(Arc::clone(&key));
        Ok(key)
    }

    /// Returns the key after the master has refused `refused`; `None` if the file has no other one.
    fn renewed(&self, refused: &Arc<str>) -> Result<Option<Arc<str>>, MasterError> {
        self.read.lock().take_if(|key| key == refused);
        Ok(Some(self.get()?).filter(|key| key != refused))
    }
}

impl Master {
    /// Creates a client for the master of this configuration. It connects at the first request.
    pub fn new(config: &MasterConfig, key_file: PathBuf) -> Self {
        let key = ApiKey { path: key_file, read: Mutex::default() };
        Master { client: MasterClient::new(config), key }
    }

    /// Sends a request by the API's key, and once more if the key has been replaced.
    async fn with_key<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        send: impl Fn(Arc<str>) -> F,
    ) -> Result<T, MasterError> {
        let key = self.key.get()?;
        let refused = match send(Arc::clone(&key)).await {
            Err(ClientError::WrongKey(message)) => message,
            answer => return Ok(answer?),
        };
        match self.key.renewed(&key)? {
            Some(key) => Ok(send(key).await?),
            None => Err(MasterError::NoKey(format!("{}: the master refuses it: {refused}", self.key.path.display()))),
        }
    }

    /// Returns a client that sends the requests of the user at this address.
    fn forwarding(&self, key: &str, address: IpAddr) -> MasterClient {
        self.client.forwarding(key.to_owned(), address)
    }

    /// Publishes a job of a user at this address.
    pub async fn publish(&self, address: IpAddr, request: &PublishRequest) -> Result<Published, MasterError> {
        self.with_key(|key| async move { self.forwarding(&key, address).publish(request).await }).await
    }

    /// Calls a runner or wheel function for a user at this address. Returns the reply: `tag`, and `data` or, for an
    /// asynchronous call, `jid`.
    pub async fn call(
        &self,
        address: IpAddr,
        registry: Registry,
        call: &Call,
        time: Duration,
    ) -> Result<Map, MasterError> {
        let called =
            self.with_key(|key| async move { self.forwarding(&key, address).call(registry, call, time).await }).await;
        called.map_err(|error| match error {
            MasterError::Unreachable(TransportError::TimedOut { .. }) => {
                MasterError::TimedOut(format!("{}.{}", registry.name(), call.fun))
            }
            error => error,
        })
    }

    /// Calls a runner function on the API's own behalf and returns its result.
    pub async fn own_runner(&self, fun: &str, args: Args) -> Result<Value, MasterError> {
        let call = |key: Arc<str>| Call {
            fun: fun.to_owned(),
            args: args.clone(),
            key: Some(key.to_string()),
            proof: None,
            user: API_USER.to_owned(),
            asynchronous: false,
            jid: None,
            is_salt: false,
        };
        let reply = self
            .with_key(|key| {
                let call = call(key);
                async move { self.client.call(Registry::Runner, &call, REQUEST_TIME).await }
            })
            .await?;
        Ok(brine_client::result(&reply)?)
    }

    /// Returns a new token with Salt's fields for a user at this address; `None` if the credentials are wrong.
    pub async fn make_token(
        &self,
        address: IpAddr,
        proof: Proof,
        expire: Option<f64>,
    ) -> Result<Option<Map>, MasterError> {
        let request = &TokenRequest { proof, expire };
        self.with_key(|key| async move { self.forwarding(&key, address).make_token(request).await }).await
    }

    /// Returns the fields of a valid token.
    pub async fn token(&self, secret: &str) -> Result<Option<Map>, MasterError> {
        Ok(self.client.token(secret).await?)
    }

    /// Publishes the event of a webhook, and waits until the master has persisted it.
    pub async fn publish_hook(&self, tag: &str, data: &Map) -> Result<(), MasterError> {
        self.with_key(|key| async move { self.client.publish_hook(&key, tag, data.clone()).await }).await
    }

    /// Subscribes to all events.
    pub async fn events(&self) -> Result<Events, MasterError> {
        Ok(self.client.events(&[""]).await?)
    }
}
