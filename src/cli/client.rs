//! The tools' way to the master of this machine: requests with a key, a password or a token, and the master's events.

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

/// How long the master may take to take a job.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// How long a runner may take.
const CALL_TIME: Duration = Duration::from_secs(24 * 3600);

/// Why the master did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It does not answer.
    #[error("The salt master could not be contacted. Is master running?")]
    NoMaster(#[source] TransportError),
    /// The key cannot be read.
    #[error(
        "cannot read {0}: run this as the user that the master runs as or as a user of its publisher_acl, on the master's machine, or authenticate with -a"
    )]
    NoKey(PathBuf),
    /// It does not accept the user.
    #[error("Authentication failed")]
    Unauthorised,
    /// The user may not do it, or is not known: the master's words.
    #[error("{0}")]
    Denied(String),
    /// It says what is wrong.
    #[error("{0}")]
    Refused(String),
    /// It says something that is not understood.
    #[error("the master's answer is not understood: {0}")]
    Answer(String),
}

/// A job that has gone out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its id; nothing if it is for nobody.
    pub jid: Option<Jid>,
    /// Who is expected to return.
    pub minions: Vec<String>,
    /// Who was named and is not known.
    pub missing: Vec<String>,
}

/// The master of this machine.
pub struct MasterClient {
    requests: RequestClient,
    events: Endpoint,
    fire: Endpoint,
    key: Option<String>,
    proof: Option<Proof>,
}

/// The user who calls, as jobs name it.
pub fn user() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten();
    let name = user.map_or_else(|| "root".to_owned(), |user| user.name);
    match std::env::var("SUDO_USER") {
        Ok(sudo) if name == "root" && !sudo.is_empty() => format!("sudo_{sudo}"),
        _ => name,
    }
}

impl MasterClient {
    /// The master of this configuration. Reads the user's key; connects when it is first asked.
    pub fn new(config: &MasterConfig) -> Result<Self, ClientError> {
        let path = brine_master::root_key_path(&config.cachedir, config.user.as_deref());
        let key = match files::read_if_exists(&path) {
            Ok(Some(key)) => key,
            // It never ran, or this user has no key.
            Ok(None) if config.cachedir.join("brine.redb").exists() => return Err(ClientError::NoKey(path)),
            Ok(None) => return Err(ClientError::NoMaster(TransportError::Closed)),
            Err(_) => return Err(ClientError::NoKey(path)),
        };
        Ok(Self::of(config, Some(key), None))
    }

    /// The master of this configuration, for a user who shows a password or a token.
    pub fn with_proof(config: &MasterConfig, proof: Proof) -> Self {
        Self::of(config, None, Some(proof))
    }

    /// What the user shows in the place of a key.
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

    /// Calls a runner function: the data of its answer.
    pub async fn runner(&self, mut call: Call) -> Result<Value, ClientError> {
        call.key.clone_from(&self.key);
        call.proof.clone_from(&self.proof);
        self.ask(ClientCommand::call_map("runner", &call), CALL_TIME).await
    }

    /// Returns a token for a user who shows a password.
    pub async fn token(&self, request: TokenRequest) -> Result<String, ClientError> {
        let answer = self.ask(request.to_map(), REQUEST_TIME).await?;
        match answer.get("token").and_then(Value::as_str) {
            Some(token) => Ok(token.to_owned()),
            None => Err(ClientError::Denied("Authentication error occurred.".to_owned())),
        }
    }

    /// Calls a runner function that returns data to go on with.
    ///
    /// # Errors
    /// The master cannot be reached, or the function failed.
    pub async fn ask_runner(&self, fun: &str, args: Args) -> Result<Value, ClientError> {
        let call = Call { fun: fun.into(), args, key: None, proof: None, user: user(), asynchronous: false };
        let answer = self.runner(call).await?;
        let data = answer.get("data");
        let field = |name: &str| data.and_then(|data| data.get(name)).cloned().unwrap_or_default();
        if field("success").is_truthy() {
            Ok(field("return"))
        } else {
            Err(ClientError::Refused(field("return").to_string()))
        }
    }

    /// Fires an event, by the socket that takes them from any program on this machine.
    pub async fn fire(&self, event: &Event) -> Result<(), ClientError> {
        let mut push = Push::connect(&self.fire).await.map_err(ClientError::NoMaster)?;
        push.send(event.frame()).await.map_err(ClientError::NoMaster)
    }

    /// Follows events whose tags start so. What happens after this returns is seen.
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

/// Events of the master, as they come.
pub struct Events(Subscriber);

impl Events {
    /// The next one. Safe to drop while it waits.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            let frames = self.0.recv().await.map_err(ClientError::NoMaster)?;
            if let Some(Ok(event)) = frames.into_iter().next().map(Event::from_frame) {
                return Ok(event);
            }
        }
    }
}
