//! The state shared by all requests.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use brine_config::{MasterConfig, RestConfig};
use brine_runtime::supervisor::Background;
use bytes::Bytes;

use crate::error::StartError;
use crate::master::Master;
use crate::{auth, hub, limits, webhook};

/// The state shared by all requests.
pub(crate) struct Api {
    pub options: RestConfig,
    pub master: Arc<Master>,
    pub auth: auth::Auth,
    pub hub: Arc<hub::Hub>,
    pub secrets: webhook::Secrets,
    pub replays: webhook::replays::Replays,
    pub limits: limits::Limits,
    /// The enabled clients (`netapi_enable_clients`).
    pub enabled: Vec<String>,
    /// The names of the systems by which users log in (`external_auth`).
    pub systems: Vec<String>,
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
    pub fn new(config: &MasterConfig, options: RestConfig, key_file: PathBuf) -> Result<Self, StartError> {
        let master = Arc::new(Master::new(config, key_file));
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
            systems: config.external_auth.keys().map(ToString::to_string).collect(),
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
