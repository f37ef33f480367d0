//! The REST API, compatible with Salt's rest_cherrypy and rest_tornado, as a client of the master.
//!
//! It holds no state of the master and opens none of its files but its own key. Jobs, calls and tokens are requests to
//! the master on behalf of the user; events come from the bus. With the key of the REST API, which permits nothing else,
//! it names the addresses of users who log in, reads the journal for subscribers and revokes tokens at logout.
//!
//! `listener.rs` accepts connections within the limits of `limits/`, `heads.rs` collects heads, `routes/` is the table of
//! resources, `resources/` contains their handlers, `lowstate/` and `local.rs` run commands, `hub/` distributes events,
//! `handover.rs` sends them, `visibility/` decides who may see them, `auth/` manages sessions.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod auth;
mod check;
mod console;
mod context;
mod error;
mod format;
pub mod fuzzing;
mod handover;
mod headers;
mod heads;
mod hub;
mod limits;
mod listener;
mod local;
mod lowstate;
mod master;
pub mod metrics;
mod peer;
mod resources;
mod routes;
mod slow_peers;
mod tls;
mod visibility;
mod webhook;

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use brine_config::{MasterConfig, RestConfig, RestOptionError};
use brine_runtime::supervisor::Background;
use bytes::Bytes;

pub use check::check;
pub use listener::Server;

/// An error at the startup of the API.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid.
    #[error("{0}")]
    Refused(String),
    /// An option is invalid.
    #[error(transparent)]
    Option(#[from] RestOptionError),
    /// An option is invalid.
    #[error("option 'rest_cherrypy.{name}' is invalid: {reason}")]
    Invalid {
        /// The option.
        name: &'static str,
        /// The reason.
        reason: String,
    },
    /// The certificate or its key cannot be used.
    #[error("loading the certificate of the API failed: {0}")]
    Certificate(String),
    /// Listening on the port failed.
    #[error("listening on {address} failed: {error}; is another salt-api running?")]
    Listen {
        /// The address.
        address: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
}

/// The state shared by all requests.
pub(crate) struct Api {
    pub options: RestConfig,
    pub master: Arc<master::Master>,
    pub auth: auth::Auth,
    pub hub: Arc<hub::Hub>,
    pub secrets: webhook::Secrets,
    pub replays: webhook::replays::Replays,
    pub limits: limits::Limits,
    /// The enabled clients (`netapi_enable_clients`).
    pub enabled: Vec<String>,
    /// Whether the client `ssh` accepts raw shell commands (`netapi_allow_raw_shell`).
    pub allows_raw_shell: bool,
    /// The timeouts of a job: for its returns, and for the `saltutil.find_job` poll of silent minions.
    pub timeout: Duration,
    pub gather: Duration,
    /// The timeout of runner and wheel functions.
    pub call_timeout: Duration,
    /// The maximum size of an event that the master accepts, in bytes.
    pub max_event_size: usize,
    pub is_tls: bool,
    /// The OpenAPI description in each format.
    pub descriptions: [OnceLock<Bytes>; 2],
    pub started: Instant,
    pub requests: AtomicU64,
    /// The tasks of connections.
    pub connections: Background,
}

impl Api {
    fn new(config: &MasterConfig, options: RestConfig, key_file: PathBuf) -> Result<Self, StartError> {
        let master = Arc::new(master::Master::new(config, key_file));
        let invalid =
            |error: webhook::SecretError| StartError::Invalid { name: "webhook_secrets", reason: error.to_string() };
        let secrets = webhook::Secrets::new(&options.webhook_secrets, options.webhook_max_age).map_err(invalid)?;
        Ok(Api {
            auth: auth::Auth::new(Arc::clone(&master), config),
            hub: Arc::new(hub::Hub::new(Arc::clone(&master))),
            master,
            secrets,
            replays: webhook::replays::Replays::default(),
            limits: limits::Limits::new(&options),
            enabled: config.netapi_enable_clients.clone(),
            allows_raw_shell: config.netapi_allow_raw_shell,
            timeout: config.timeout.seconds(),
            gather: config.gather_job_timeout.seconds(),
            call_timeout: Duration::from_secs(config.rest_timeout),
            max_event_size: config.max_event_size,
            is_tls: !options.disable_ssl,
            descriptions: Default::default(),
            options,
            started: Instant::now(),
            requests: AtomicU64::new(0),
            connections: Background::default(),
        })
    }
}
