//! The API's client of the local master: requests in the name of users, and the API's own calls.

use std::path::PathBuf;
use std::time::Duration;

use brine_client::{Events, MasterClient, Published, REQUEST_TIME, Registry};
use brine_config::MasterConfig;
use brine_event::Event;
use brine_function::Args;
use brine_system::files;
use brine_value::{Map, Value};
use brine_wire::{Call, Proof, PublishRequest, TokenRequest};
use brine_zmtp::TransportError;

use crate::error::MasterError;

/// The user of the API's own calls.
const API_USER: &str = "salt-api";

/// A client of the local master.
pub(crate) struct Master {
    client: MasterClient,
    /// The file with the key that authorizes local tools.
    key_file: PathBuf,
}

impl Master {
    /// Creates a client for the master of this configuration. It connects at the first request.
    pub fn new(config: &MasterConfig, key_file: PathBuf) -> Self {
        Master { client: MasterClient::new(config), key_file }
    }

    /// Publishes a job.
    pub async fn publish(&self, request: &PublishRequest) -> Result<Published, MasterError> {
        Ok(self.client.publish(request).await?)
    }

    /// Calls a runner or wheel function. Returns the reply: `tag`, and `data` or, for an asynchronous call, `jid`.
    pub async fn call(&self, registry: Registry, call: &Call, time: Duration) -> Result<Map, MasterError> {
        self.client.call(registry, call, time).await.map_err(|error| match error.into() {
            MasterError::Unreachable(TransportError::TimedOut { .. }) => {
                MasterError::TimedOut(format!("{}.{}", registry.name(), call.fun))
            }
            error => error,
        })
    }

    /// Calls a runner function in the API's own name and returns its result.
    pub async fn own_runner(&self, fun: &str, args: Args) -> Result<Value, MasterError> {
        let no_key = |error: &dyn std::fmt::Display| MasterError::NoKey(error.to_string());
        // The key is read for each call: the master may have been started or restarted in the meantime.
        let key = files::read_if_exists(&self.key_file).map_err(|error| no_key(&error))?;
        let key = key.ok_or_else(|| no_key(&self.key_file.display()))?;
        let call = Call {
            fun: fun.to_owned(),
            args,
            key: Some(key),
            proof: None,
            user: API_USER.to_owned(),
            asynchronous: false,
            jid: None,
            is_salt: false,
        };
        Ok(brine_client::result(&self.call(Registry::Runner, &call, REQUEST_TIME).await?)?)
    }

    /// Returns a new token with Salt's fields; `None` if the credentials are wrong.
    pub async fn make_token(&self, proof: Proof, expire: Option<f64>) -> Result<Option<Map>, MasterError> {
        Ok(self.client.make_token(&TokenRequest { proof, expire }).await?)
    }

    /// Returns the fields of a valid token.
    pub async fn token(&self, secret: &str) -> Result<Option<Map>, MasterError> {
        Ok(self.client.token(secret).await?)
    }

    /// Publishes an event.
    pub async fn fire(&self, event: &Event) -> Result<(), MasterError> {
        Ok(self.client.fire(event).await?)
    }

    /// Subscribes to all events.
    pub async fn events(&self) -> Result<Events, MasterError> {
        Ok(self.client.events(&[""]).await?)
    }
}
