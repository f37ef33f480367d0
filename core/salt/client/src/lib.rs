//! The client of the local master, for the command-line tools and the REST API: requests in the name of a user, events,
//! and [jobs](job) from their publication to the last return.

pub mod job;

use std::net::IpAddr;
use std::time::Duration;

use brine_bus::{SINCE, SocketNames};
use brine_config::MasterConfig;
use brine_event::Event;
pub use brine_job::Published;
use brine_value::{Map, Value, map, msgpack};
use brine_wire::{
    Call, ClientCommand, Envelope, Forwarded, HookEvent, IGNORES_JOB_FILES, PublishRequest, TokenRequest,
};
use brine_zmtp::{Endpoint, Framing, Limits, Push, RequestClient, Subscriber, TransportError};

/// The timeout of requests that the master answers at once.
pub const REQUEST_TIME: Duration = Duration::from_secs(30);

/// The errors of requests to the master.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The master cannot be reached, or does not reply.
    #[error("reaching the master failed: {0}")]
    Unreachable(#[from] TransportError),
    /// The master refuses the key of the local tools. The message is the master's.
    #[error("{0}")]
    WrongKey(String),
    /// The user is unknown or not permitted. The message is the master's.
    #[error("{0}")]
    Denied(String),
    /// The master refuses the request with this message.
    #[error("{0}")]
    Refused(String),
    /// The master could not parse the request. The message is the master's.
    #[error("{0}")]
    BadLoad(String),
    /// The reply cannot be decoded.
    #[error("decoding the master's reply failed: {0}")]
    Reply(String),
}

/// The registry of one of the master's functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    /// Functions that `salt-run` calls.
    Runner,
    /// Functions that manage the master.
    Wheel,
}

impl Registry {
    /// Returns the name of the registry in requests.
    pub fn name(self) -> &'static str {
        match self {
            Registry::Runner => "runner",
            Registry::Wheel => "wheel",
        }
    }
}

/// A client of the local master.
#[derive(Clone)]
pub struct MasterClient {
    requests: RequestClient,
    events: Endpoint,
    fire: Endpoint,
    /// The key of the REST API and the address of the client for whom it sends requests.
    forwards: Option<(String, IpAddr)>,
}

impl MasterClient {
    /// Creates a client for the master of this configuration. The first request connects.
    pub fn new(config: &MasterConfig) -> Self {
        let host = match config.interface.as_str() {
            "0.0.0.0" => "127.0.0.1",
            "::" => "::1",
            host => host,
        };
        let framing = Framing::of_transport(config.transport.is_tcp());
        let limits = Limits { framing, message: config.max_message_size, ..Limits::default() };
        MasterClient {
            requests: RequestClient::new(Endpoint::Tcp(host.to_owned(), config.ret_port), limits),
            events: SocketNames::master().publish_endpoint(&config.sock_dir),
            fire: SocketNames::master().pull_endpoint(&config.sock_dir),
            forwards: None,
        }
    }

    /// Returns a client that sends requests of users for the client of the REST API at this address, by the API's key.
    #[must_use]
    pub fn forwarding(&self, key: String, address: IpAddr) -> Self {
        MasterClient { forwards: Some((key, address)), ..self.clone() }
    }

    async fn ask(&self, load: Map, time: Duration) -> Result<Value, ClientError> {
        loaded(&self.reply(load, time).await?)
    }

    async fn reply(&self, load: Map, time: Duration) -> Result<Value, ClientError> {
        let load = match &self.forwards {
            Some((key, address)) => Forwarded::to_map(key, *address, load),
            None => load,
        };
        let reply = self.requests.request(Envelope::clear(load), time).await?;
        msgpack::unpack(&reply).map_err(|error| ClientError::Reply(error.to_string()))
    }

    /// Returns the token in a reply; replies to token requests have no envelope, but the refusal to forward one has.
    async fn ask_token(&self, load: Map, field: &str) -> Result<Option<Map>, ClientError> {
        match self.reply(load, REQUEST_TIME).await? {
            reply @ Value::Map(_) if reply.get("load").is_some() => loaded(&reply).map(|_| None),
            Value::Map(token) => Ok(Some(token).filter(|token| token.contains_key(field))),
            Value::Str(text) if text.is_empty() => Ok(None),
            other => Err(ClientError::BadLoad(other.to_string())),
        }
    }

    /// Publishes a job.
    ///
    /// # Errors
    /// The master cannot be reached, or refuses the job.
    pub async fn publish(&self, request: &PublishRequest) -> Result<Published, ClientError> {
        let mut request = request.clone();
        request.kwargs.insert(IGNORES_JOB_FILES.into(), true.into());
        let reply = self.ask(request.to_map(), REQUEST_TIME).await?;
        Ok(Published::from_value(&reply))
    }

    /// Calls a runner or wheel function and returns the reply: `tag`, and `data` or, of an asynchronous call, `jid`.
    ///
    /// # Errors
    /// The master cannot be reached, does not reply within `time`, or refuses the call. An error of the function itself
    /// is part of the reply: see [`result`].
    pub async fn call(&self, registry: Registry, call: &Call, time: Duration) -> Result<Map, ClientError> {
        match self.ask(ClientCommand::call_map(registry.name(), call), time).await? {
            Value::Map(reply) => Ok(reply),
            other => Err(ClientError::Reply(other.to_string())),
        }
    }

    /// Returns a new token with Salt's fields; `None` if the credentials are wrong.
    ///
    /// # Errors
    /// The master cannot be reached, or refuses the request.
    pub async fn make_token(&self, request: &TokenRequest) -> Result<Option<Map>, ClientError> {
        self.ask_token(request.to_map(), "token").await
    }

    /// Returns the fields of a valid token.
    ///
    /// # Errors
    /// The master cannot be reached, or refuses the request.
    pub async fn token(&self, secret: &str) -> Result<Option<Map>, ClientError> {
        self.ask_token(map! {"cmd" => "get_token", "token" => secret}, "name").await
    }

    /// Publishes the event of a webhook by the key of the REST API, and waits until the master has persisted it.
    ///
    /// # Errors
    /// The master cannot be reached, or refuses the event.
    pub async fn publish_hook(&self, key: &str, tag: &str, data: Map) -> Result<(), ClientError> {
        self.ask(HookEvent::to_map(key, tag, data), REQUEST_TIME).await.map(drop)
    }

    /// Publishes an event. The socket acknowledges nothing: the event is lost if the master ends at once.
    ///
    /// # Errors
    /// The master's socket cannot be reached, or does not accept the event in time.
    pub async fn fire(&self, event: &Event) -> Result<(), ClientError> {
        let sending = async {
            let mut push = Push::connect(&self.fire).await?;
            push.send(event.frame()).await
        };
        let timed_out = |_| TransportError::TimedOut { endpoint: self.fire.to_string(), after: REQUEST_TIME };
        Ok(tokio::time::timeout(REQUEST_TIME, sending).await.map_err(timed_out)??)
    }

    /// Subscribes to events with these prefixes of their tags. All events that are published after this function
    /// returns are received.
    ///
    /// # Errors
    /// The master's socket cannot be reached.
    pub async fn events(&self, prefixes: &[&str]) -> Result<Events, ClientError> {
        self.events_since(prefixes, None).await
    }

    /// As [`MasterClient::events`], starting with the event of this number, or the oldest one in the journal.
    ///
    /// # Errors
    /// The master's socket cannot be reached.
    pub async fn events_since(&self, prefixes: &[&str], first: Option<u64>) -> Result<Events, ClientError> {
        let since = first.map(|seq| [SINCE, seq.to_string().as_bytes()].concat());
        let prefixes: Vec<&[u8]> =
            since.iter().map(Vec::as_slice).chain(prefixes.iter().map(|prefix| prefix.as_bytes())).collect();
        Ok(Events(Subscriber::connect(&self.events, &prefixes, Limits::default()).await?))
    }
}

/// Returns the load of a reply, or the master's error.
fn loaded(reply: &Value) -> Result<Value, ClientError> {
    let Some(load) = reply.get("load") else { return Err(ClientError::BadLoad(reply.to_string())) };
    let Some(error) = load.get("error") else { return Ok(load.clone()) };
    let text = |name| error.get(name).map(ToString::to_string);
    let message = text("message").unwrap_or_else(|| error.to_string());
    Err(match text("name").as_deref() {
        Some("UserAuthenticationError") => ClientError::WrongKey(message),
        Some(
            "AuthenticationError" | "AuthorizationError" | "EauthAuthenticationError" | "TokenAuthenticationError",
        ) => ClientError::Denied(message),
        _ => ClientError::Refused(message),
    })
}

/// Returns the result of a call from its reply.
///
/// # Errors
/// The error of the function, as [`ClientError::Refused`].
pub fn result(reply: &Map) -> Result<Value, ClientError> {
    let data = reply.get("data");
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
    /// Returns the next event. Cancel safe. Invalid ones are logged.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            let Some(frame) = self.0.recv().await?.into_iter().next() else { continue };
            match Event::from_frame(frame) {
                Ok(event) => return Ok(event),
                Err(error) => tracing::warn!(%error, "an event of the master is invalid"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_master_keep_their_kind() {
        let error = |name: &str| map! {"load" => map! {"error" => map! {"name" => name, "message" => "why"}}}.into();
        for (reply, expected) in [
            (Value::from("bad load"), "BadLoad(\"bad load\")"),
            (error("UserAuthenticationError"), "WrongKey(\"why\")"),
            (error("AuthenticationError"), "Denied(\"why\")"),
            (error("AuthorizationError"), "Denied(\"why\")"),
            (error("EauthAuthenticationError"), "Denied(\"why\")"),
            (error("TokenAuthenticationError"), "Denied(\"why\")"),
            (error("Other"), "Refused(\"why\")"),
            (map! {"load" => map! {"error" => "plain"}}.into(), "Refused(\"plain\")"),
        ] {
            assert_eq!(format!("{:?}", loaded(&reply).unwrap_err()), expected, "{reply}");
        }
        let reply = map! {"load" => map! {"jid" => "1"}}.into();
        assert_eq!(loaded(&reply).unwrap(), map! {"jid" => "1"}.into());
    }

    #[test]
    fn a_call_has_a_result_or_the_error_of_its_function() {
        let reply = |success: bool| map! {"data" => map! {"success" => success, "return" => "text"}};
        assert_eq!(result(&reply(true)).unwrap(), "text".into());
        assert_eq!(result(&reply(false)).unwrap_err().to_string(), "text");
        assert!(matches!(result(&Map::new()), Err(ClientError::Refused(_))));
    }
}
