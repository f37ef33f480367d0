//! The client of the local master: requests with a key, a password or a token, and subscriptions to its events.

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

/// The timeout of publishing a job.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// The timeout of a runner function.
const CALL_TIME: Duration = Duration::from_secs(24 * 3600);

/// The errors of requests to the master.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The master does not answer. The message is Salt's.
    #[error("The salt master could not be contacted. Is master running?")]
    NoMaster(#[source] TransportError),
    /// The key cannot be read.
    #[error(
        "reading {0} failed: run the tool as the user that the master runs as or as a user of its publisher_acl, on the master's host, or authenticate with -a"
    )]
    NoKey(PathBuf),
    /// The master refuses the key.
    #[error("Authentication failed")]
    Unauthorised,
    /// The master does not know the user, or the user is not permitted. The message is the master's.
    #[error("{0}")]
    Denied(String),
    /// The master refuses the request with this message.
    #[error("{0}")]
    Refused(String),
    /// The reply does not decode.
    #[error("decoding the master's reply failed: {0}")]
    Answer(String),
}

/// A published job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its id; `None` if no minion matches the target.
    pub jid: Option<Jid>,
    /// The minions that are expected to return.
    pub minions: Vec<String>,
    /// Unknown minions that the target names.
    pub missing: Vec<String>,
}

/// A client of the local master.
pub struct MasterClient {
    requests: RequestClient,
    events: Endpoint,
    fire: Endpoint,
    key: Option<String>,
    proof: Option<Proof>,
}

/// Returns the name of the caller for jobs, as Salt forms it.
pub fn user() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten();
    let name = user.map_or_else(|| "root".to_owned(), |user| user.name);
    match std::env::var("SUDO_USER") {
        Ok(sudo) if name == "root" && !sudo.is_empty() => format!("sudo_{sudo}"),
        _ => name,
    }
}

impl MasterClient {
    /// Creates a client for the master of this configuration. Reads the user's key; the first request connects.
    pub fn new(config: &MasterConfig) -> Result<Self, ClientError> {
        let path = brine_master::root_key_path(&config.cachedir, config.user.as_deref());
        let key = match files::read_if_exists(&path) {
            Ok(Some(key)) => key,
            // The master has never run, or this user has no key.
            Ok(None) if config.cachedir.join("brine.redb").exists() => return Err(ClientError::NoKey(path)),
            Ok(None) => return Err(ClientError::NoMaster(TransportError::Closed)),
            Err(_) => return Err(ClientError::NoKey(path)),
        };
        Ok(Self::of(config, Some(key), None))
    }

    /// Creates a client for a user with a password or a token.
    pub fn with_proof(config: &MasterConfig, proof: Proof) -> Self {
        Self::of(config, None, Some(proof))
    }

    /// Returns the user's proof of identity that replaces a key.
    pub fn proof(&self) -> Option<&Proof> {
        self.proof.as_ref()
    }

    fn of(config: &MasterConfig, key: Option<String>, proof: Option<Proof>) -> Self {
        let host = match config.interface.as_str() {
            "0.0.0.0" => "127.0.0.1",
            "::" => "::1",
            host => host,
        };
        let limits = Limits { message: config.max_message_size, ..Limits::default() };
        let requests = RequestClient::new(Endpoint::Tcp(host.to_owned(), config.ret_port), limits);
        let events = SocketNames::master().publish_endpoint(&config.sock_dir);
        let fire = SocketNames::master().pull_endpoint(&config.sock_dir);
        MasterClient { requests, events, fire, key, proof }
    }

    async fn ask(&self, load: Map, time: Duration) -> Result<Value, ClientError> {
        let answer = self.requests.request(Envelope::clear(load), time).await.map_err(ClientError::NoMaster)?;
        let answer = msgpack::unpack(&answer).map_err(|error| ClientError::Answer(error.to_string()))?;
        let Some(load) = answer.get("load") else { return Err(ClientError::Answer(answer.to_string())) };
        if let Some(error) = load.get("error") {
            let text = |name| error.get(name).map(ToString::to_string);
            return Err(match text("name").as_deref() {
                Some("UserAuthenticationError") => ClientError::Unauthorised,
                Some(
                    "AuthenticationError"
                    | "AuthorizationError"
                    | "EauthAuthenticationError"
                    | "TokenAuthenticationError",
                ) => ClientError::Denied(text("message").unwrap_or_default()),
                _ => ClientError::Refused(text("message").unwrap_or_else(|| error.to_string())),
            });
        }
        Ok(load.clone())
    }

    /// Publishes a job.
    pub async fn publish(&self, mut request: PublishRequest) -> Result<Published, ClientError> {
        request.key.clone_from(&self.key);
        request.proof.clone_from(&self.proof);
        let answer = self.ask(request.to_map(), REQUEST_TIME).await?;
        let list = |name| -> Vec<String> {
            answer.get(name).and_then(Value::as_list).unwrap_or_default().iter().map(ToString::to_string).collect()
        };
        let jid = answer.get("jid").and_then(Value::as_str).and_then(|jid| jid.parse().ok());
        Ok(Published { jid, minions: list("minions"), missing: list("missing") })
    }

    /// Calls a runner function and returns the data of its reply.
    pub async fn runner(&self, mut call: Call) -> Result<Value, ClientError> {
        call.key.clone_from(&self.key);
        call.proof.clone_from(&self.proof);
        self.ask(ClientCommand::call_map("runner", &call), CALL_TIME).await
    }

    /// Calls a wheel function and returns its result.
    ///
    /// # Errors
    /// The master cannot be reached, the user is not permitted, or the function failed.
    pub async fn ask_wheel(&self, fun: &str, args: Args) -> Result<Value, ClientError> {
        let call = self.with_credentials(fun, args);
        result(&self.ask(ClientCommand::call_map("wheel", &call), REQUEST_TIME).await?)
    }

    fn with_credentials(&self, fun: &str, args: Args) -> Call {
        let (key, proof) = (self.key.clone(), self.proof.clone());
        Call { fun: fun.into(), args, key, proof, user: user(), asynchronous: false }
    }

    /// Returns a token for a user with a password.
    pub async fn token(&self, request: TokenRequest) -> Result<String, ClientError> {
        let answer = self.ask(request.to_map(), REQUEST_TIME).await?;
        match answer.get("token").and_then(Value::as_str) {
            Some(token) => Ok(token.to_owned()),
            None => Err(ClientError::Denied("Authentication error occurred.".to_owned())),
        }
    }

    /// Calls a runner function and returns its result.
    ///
    /// # Errors
    /// The master cannot be reached, or the function failed.
    pub async fn ask_runner(&self, fun: &str, args: Args) -> Result<Value, ClientError> {
        result(&self.runner(self.with_credentials(fun, args)).await?)
    }

    /// Publishes an event through the pull socket.
    pub async fn fire(&self, event: &Event) -> Result<(), ClientError> {
        let mut push = Push::connect(&self.fire).await.map_err(ClientError::NoMaster)?;
        push.send(event.frame()).await.map_err(ClientError::NoMaster)
    }

    /// Subscribes to events with this prefix of their tags. Events published after this function returns are received.
    pub async fn events(&self, prefix: &str) -> Result<Events, ClientError> {
        self.events_of(&[prefix]).await
    }

    /// As [`MasterClient::events`], for several prefixes.
    pub async fn events_of(&self, prefixes: &[&str]) -> Result<Events, ClientError> {
        let limits = Limits::default();
        let prefixes: Vec<&[u8]> = prefixes.iter().map(|prefix| prefix.as_bytes()).collect();
        let subscriber = Subscriber::connect(&self.events, &prefixes, limits).await;
        Ok(Events(subscriber.map_err(ClientError::NoMaster)?))
    }
}

/// Returns the result of a call, or the error of the function.
fn result(answer: &Value) -> Result<Value, ClientError> {
    let data = answer.get("data");
    let field = |name: &str| data.and_then(|data| data.get(name)).cloned().unwrap_or_default();
    if field("success").is_truthy() {
        Ok(field("return"))
    } else {
        Err(ClientError::Refused(field("return").to_string()))
    }
}

/// A subscription to the master's events.
pub struct Events(Subscriber);

impl Events {
    /// Returns the next event. Cancel safe.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            let frames = self.0.recv().await.map_err(ClientError::NoMaster)?;
            if let Some(Ok(event)) = frames.into_iter().next().map(Event::from_frame) {
                return Ok(event);
            }
        }
    }
}
