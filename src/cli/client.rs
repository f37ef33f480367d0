//! The client of the local master with the credentials of the tools: a key, a password or a token.

use std::path::PathBuf;
use std::time::Duration;

use brine_client::job::Link;
use brine_client::{Published, REQUEST_TIME, Registry, result};
use brine_config::MasterConfig;
use brine_event::Event;
use brine_function::Args;
use brine_system::files;
use brine_value::{Map, Value};
use brine_wire::{Call, Proof, PublishRequest, TokenRequest};
use brine_zmtp::TransportError;

use super::privileges;

/// The timeout of a runner function.
const CALL_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

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
    /// The user may not read the master's events.
    #[error(
        "reading the master's events failed: {cause}: following a job is only possible for {readers}; with --async, salt publishes the job without following it"
    )]
    NoEvents {
        /// The system's error.
        #[source]
        cause: TransportError,
        /// Who may read them, and how the user becomes one of them.
        readers: String,
    },
    /// The master refuses the key.
    #[error("Authentication failed")]
    Unauthorised,
    /// The user is unknown to the master, or is not permitted. The message is the master's.
    #[error("{0}")]
    Denied(String),
    /// The master refuses the request with this message.
    #[error("{0}")]
    Refused(String),
    /// The reply does not decode.
    #[error("decoding the master's reply failed: {0}")]
    MinionResult(String),
}

impl From<brine_client::ClientError> for ClientError {
    fn from(error: brine_client::ClientError) -> Self {
        use brine_client::ClientError as Error;
        match error {
            Error::Unreachable(error) => ClientError::NoMaster(error),
            Error::WrongKey(_) => ClientError::Unauthorised,
            Error::Denied(message) => ClientError::Denied(message),
            Error::Refused(message) => ClientError::Refused(message),
            Error::BadLoad(reply) | Error::Reply(reply) => ClientError::MinionResult(reply),
        }
    }
}

/// A client of the local master in the name of one user.
pub struct MasterClient {
    master: brine_client::MasterClient,
    key: Option<String>,
    proof: Option<Proof>,
    /// Who may read the master's events.
    readers: String,
}

/// Returns who may read the master's events, and how the user becomes one of them.
fn readers(config: &MasterConfig) -> String {
    match config.sock_group.as_deref().filter(|name| !name.is_empty()) {
        Some(group) => format!(
            "the master's user and the members of the group '{group}': `usermod --append --groups {group} {}` as root adds \
             this user, from the next login on",
            privileges::user_name().unwrap_or_else(|| "USER".to_owned())
        ),
        None => "the master's user and its group: the option 'sock_group' of the master names another group".to_owned(),
    }
}

/// Returns what to do if the master does not answer.
pub fn without_master(config: &MasterConfig) -> String {
    let log = if config.log_file.as_os_str().is_empty() {
        "its log".to_owned()
    } else {
        format!("its log {}", config.log_file.display())
    };
    format!(
        "hint: its configuration is {}, its sockets are in {}, and its requests arrive at port {}. If it should run, {log} and \
         `salt-master --check` say why it does not",
        config.config_dir.display(),
        config.sock_dir.display(),
        config.ret_port
    )
}

/// Returns the name of the caller for jobs, as Salt forms it.
pub fn user() -> String {
    let name = privileges::user_name().unwrap_or_else(|| "root".to_owned());
    match std::env::var("SUDO_USER") {
        Ok(sudo) if name == "root" && !sudo.is_empty() => format!("sudo_{sudo}"),
        _ => name,
    }
}

impl MasterClient {
    /// Creates a client for the master of this configuration. Reads the user's key; the first request connects.
    pub fn new(config: &MasterConfig) -> Result<Self, ClientError> {
        let path = brine_master_access::access::root_key_path(&config.cachedir, config.user.as_deref());
        let key = match files::read_if_exists(&path) {
            Ok(Some(key)) => key,
            // The master has never run, or this user has no key.
            Ok(None) if config.store_path().exists() => return Err(ClientError::NoKey(path)),
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
        MasterClient { master: brine_client::MasterClient::new(config), key, proof, readers: readers(config) }
    }

    /// Publishes a job.
    pub async fn publish(&self, mut request: PublishRequest) -> Result<Published, ClientError> {
        request.key.clone_from(&self.key);
        request.proof.clone_from(&self.proof);
        Ok(self.master.publish(&request).await?)
    }

    /// Calls a runner function and returns the data of its reply.
    pub async fn runner(&self, mut call: Call) -> Result<Map, ClientError> {
        call.key.clone_from(&self.key);
        call.proof.clone_from(&self.proof);
        Ok(self.master.call(Registry::Runner, &call, CALL_TIMEOUT).await?)
    }

    /// Calls a wheel function and returns its result.
    ///
    /// # Errors
    /// The master cannot be reached, the user is not permitted, or the function failed.
    pub async fn ask_wheel(&self, fun: &str, args: Args) -> Result<Value, ClientError> {
        let call = self.with_credentials(fun, args);
        Ok(result(&self.master.call(Registry::Wheel, &call, REQUEST_TIME).await?)?)
    }

    fn with_credentials(&self, fun: &str, args: Args) -> Call {
        let (key, proof) = (self.key.clone(), self.proof.clone());
        Call { fun: fun.into(), args, key, proof, user: user(), asynchronous: false, jid: None, is_salt: false }
    }

    /// Returns a token for a user with a password.
    pub async fn token(&self, request: TokenRequest) -> Result<String, ClientError> {
        let token = self.master.make_token(&request).await?;
        match token.as_ref().and_then(|token| token.get("token")).and_then(Value::as_str) {
            Some(token) => Ok(token.to_owned()),
            None => Err(ClientError::Denied("Authentication error occurred.".to_owned())),
        }
    }

    /// Calls a runner function and returns its result.
    ///
    /// # Errors
    /// The master cannot be reached, or the function failed.
    pub async fn ask_runner(&self, fun: &str, args: Args) -> Result<Value, ClientError> {
        Ok(result(&self.runner(self.with_credentials(fun, args)).await?)?)
    }

    /// Publishes an event through the pull socket.
    pub async fn fire(&self, event: &Event) -> Result<(), ClientError> {
        Ok(self.master.fire(event).await?)
    }

    /// Subscribes to events with this prefix of their tags. Events published after this function returns are received.
    pub async fn events(&self, prefix: &str) -> Result<Events, ClientError> {
        self.events_of(&[prefix]).await
    }

    /// Subscribes like [`MasterClient::events`], to several prefixes.
    pub async fn events_of(&self, prefixes: &[&str]) -> Result<Events, ClientError> {
        let is_denied = |error: &TransportError| match error {
            TransportError::Io { source, .. } => source.kind() == std::io::ErrorKind::PermissionDenied,
            _ => false,
        };
        match self.master.events(prefixes).await {
            Err(brine_client::ClientError::Unreachable(error)) if is_denied(&error) => {
                Err(ClientError::NoEvents { cause: error, readers: self.readers.clone() })
            }
            events => Ok(Events(events?)),
        }
    }

    /// Subscribes to the events of a job that is about to be published, and to events with these prefixes.
    pub async fn link(&self, prefixes: &[&str]) -> Result<JobLink<'_>, ClientError> {
        let events = self.events_of(&[&["salt/job/", "syndic/"], prefixes].concat()).await?;
        Ok(JobLink { client: self, events })
    }
}

/// A subscription to the master's events.
pub struct Events(brine_client::Events);

impl Events {
    /// Returns the next event. Cancel safe.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        Ok(self.0.next().await?)
    }
}

/// The client and the event subscription of one job. Ctrl-C interrupts the job.
pub struct JobLink<'a> {
    client: &'a MasterClient,
    events: Events,
}

impl Link for JobLink<'_> {
    type Error = ClientError;

    async fn publish(&mut self, request: PublishRequest) -> Result<Published, ClientError> {
        self.client.publish(request).await
    }

    async fn event(&mut self) -> Result<Option<Event>, ClientError> {
        tokio::select! {
            event = self.events.next() => event.map(Some),
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    }
}
