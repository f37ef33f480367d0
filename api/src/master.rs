//! The client of the local master: jobs, calls and tokens in the name of users, and events.

use std::path::PathBuf;
use std::time::Duration;

use brine_bus::SocketNames;
use brine_config::MasterConfig;
use brine_event::Event;
use brine_function::Args;
use brine_ids::Jid;
use brine_system::files;
use brine_value::{Map, Value, msgpack};
use brine_wire::{Call, ClientCommand, Envelope, Proof, PublishRequest, TokenRequest};
use brine_zmtp::{Endpoint, Limits, Push, RequestClient, Subscriber, TransportError};

use crate::error::MasterError;

/// The timeout of a publish or a token.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// The user of the API's own calls.
const OWN_USER: &str = "salt-api";

/// A published job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Published {
    /// Its id; `None` if no minion matches the target.
    pub jid: Option<Jid>,
    /// The minions that are expected to return.
    pub minions: Vec<String>,
    /// Unknown minions that the target lists.
    pub missing: Vec<String>,
}

/// The registry of a function of the master.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registry {
    Runner,
    Wheel,
}

impl Registry {
    pub fn name(self) -> &'static str {
        match self {
            Registry::Runner => "runner",
            Registry::Wheel => "wheel",
        }
    }
}

/// A client of the local master.
pub(crate) struct Master {
    requests: RequestClient,
    events: Endpoint,
    fire: Endpoint,
    /// The file with the key that authorizes local tools.
    key_file: PathBuf,
}

impl Master {
    /// Creates a client for the master of this configuration. The first request connects.
    pub fn new(config: &MasterConfig, key_file: PathBuf) -> Self {
        let host = match config.interface.as_str() {
            "0.0.0.0" => "127.0.0.1",
            "::" => "::1",
            host => host,
        };
        let limits = Limits { message: config.max_message_size, ..Limits::default() };
        Master {
            requests: RequestClient::new(Endpoint::Tcp(host.to_owned(), config.ret_port), limits),
            events: SocketNames::master().publish_endpoint(&config.sock_dir),
            fire: SocketNames::master().pull_endpoint(&config.sock_dir),
            key_file,
        }
    }

    async fn ask(&self, load: Map, time: Duration) -> Result<Value, MasterError> {
        let reply = self.requests.request(Envelope::clear(load), time).await?;
        let reply = msgpack::unpack(&reply).map_err(|error| MasterError::Reply(error.to_string()))?;
        let Some(load) = reply.get("load") else { return Err(MasterError::Refused(reply.to_string())) };
        let Some(error) = load.get("error") else { return Ok(load.clone()) };
        let text = |name| error.get(name).map(ToString::to_string);
        let message = text("message").unwrap_or_else(|| error.to_string());
        Err(match text("name").as_deref() {
            Some(
                "AuthenticationError"
                | "AuthorizationError"
                | "EauthAuthenticationError"
                | "TokenAuthenticationError"
                | "UserAuthenticationError",
            ) => MasterError::Denied(message),
            _ => MasterError::Refused(message),
        })
    }

    /// Publishes a job.
    pub async fn publish(&self, request: &PublishRequest) -> Result<Published, MasterError> {
        let reply = self.ask(request.to_map(), REQUEST_TIME).await?;
        let list = |name| -> Vec<String> {
            reply.get(name).and_then(Value::as_list).unwrap_or_default().iter().map(ToString::to_string).collect()
        };
        let jid = reply.get("jid").and_then(Value::as_str).and_then(|jid| jid.parse().ok());
        Ok(Published { jid, minions: list("minions"), missing: list("missing") })
    }

    /// Calls a runner or wheel function and returns the reply: `tag`, and `data` or, of an asynchronous call, `jid`.
    pub async fn call(&self, registry: Registry, call: &Call, time: Duration) -> Result<Map, MasterError> {
        let reply = self.ask(ClientCommand::call_map(registry.name(), call), time).await;
        match reply {
            Ok(Value::Map(reply)) => Ok(reply),
            Ok(other) => Err(MasterError::Reply(other.to_string())),
            Err(MasterError::Unreachable(TransportError::TimedOut { .. })) => {
                Err(MasterError::TimedOut(format!("{}.{}", registry.name(), call.fun)))
            }
            Err(error) => Err(error),
        }
    }

    /// Calls a runner function in the API's own name and returns its result.
    pub async fn own_runner(&self, fun: &str, args: Args) -> Result<Value, MasterError> {
        let no_key = |error: &dyn std::fmt::Display| MasterError::NoKey(error.to_string());
        // Read each time: the master may have been started or restarted since.
        let key = files::read_if_exists(&self.key_file).map_err(|error| no_key(&error))?;
        let key = key.ok_or_else(|| no_key(&self.key_file.display()))?;
        let call = Call {
            fun: fun.to_owned(),
            args,
            key: Some(key),
            proof: None,
            user: OWN_USER.to_owned(),
            asynchronous: false,
        };
        let reply = self.call(Registry::Runner, &call, REQUEST_TIME).await?;
        let field = |name: &str| reply.get("data").and_then(|data| data.get(name)).cloned().unwrap_or_default();
        if field("success").is_truthy() {
            Ok(field("return"))
        } else {
            Err(MasterError::Refused(field("return").to_string()))
        }
    }

    /// Returns a new token with Salt's fields; `None` if the credentials are wrong.
    pub async fn make_token(&self, proof: Proof, expire: Option<f64>) -> Result<Option<Map>, MasterError> {
        let reply = self.ask(TokenRequest { proof, expire }.to_map(), REQUEST_TIME).await?;
        Ok(reply.as_map().filter(|token| token.contains_key("token")).cloned())
    }

    /// Returns the fields of a valid token.
    pub async fn token(&self, secret: &str) -> Result<Option<Map>, MasterError> {
        let load = brine_value::map! {"cmd" => "get_token", "token" => secret};
        let reply = self.ask(load, REQUEST_TIME).await?;
        Ok(reply.as_map().filter(|token| token.contains_key("name")).cloned())
    }

    /// Publishes an event.
    pub async fn fire(&self, event: &Event) -> Result<(), MasterError> {
        let sending = async {
            let mut push = Push::connect(&self.fire).await?;
            push.send(event.frame()).await
        };
        let timed_out = |_| MasterError::TimedOut("publishing an event".to_owned());
        Ok(tokio::time::timeout(REQUEST_TIME, sending).await.map_err(timed_out)??)
    }

    /// Subscribes to all events.
    pub async fn events(&self) -> Result<Subscriber, MasterError> {
        Ok(Subscriber::connect(&self.events, &[b""], Limits::default()).await?)
    }
}
