//! Tries the masters of a minion for `--check`: their names, their ports, and what they think of the minion's key.

use std::sync::Arc;
use std::time::Duration;

use brine_check::Finding;
use brine_config::MinionConfig;
use brine_context::{MASTER_KEY, minion_id};
use brine_crypt::{PrivateKey, PublicKey};
use brine_runtime::executors::Executor;
use brine_zmtp::{Endpoint, Limits, Subscriber, TransportError};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::channel::{Channel, ChannelError};
use crate::masters::Address;

/// The timeout of one try.
const TRY_TIMEOUT: Duration = Duration::from_secs(5);

/// What a master answers to a minion that it is tried with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Its name has no address.
    Unresolved,
    /// Its request port does not answer, or not as a master.
    Unreachable,
    /// Its publish port does not answer.
    NoPublishPort,
    /// It has not accepted the minion's key yet, or defers the authentication.
    Pending,
    /// It has rejected the minion's key, or knows another one for the id.
    Rejected,
    /// Its key is not the one that the minion trusts.
    ChangedKey,
    /// It does not open a session for another reason.
    Refused,
    /// It accepts the minion, and publishes at this port; `None` if it was not asked, because the minion has no key yet,
    /// or for `transport: tcp`.
    Accepted(Option<u16>),
}

/// The result of a try of a master.
#[derive(Debug, Clone)]
pub struct Try {
    /// The name or address of the master, and its request port.
    pub master: (String, u16),
    /// Its answer.
    pub answer: Answer,
    /// The finding for `--check`.
    pub finding: Finding,
}

/// Tries to reach the masters of the configuration. Nothing is stored on this host; a master that does not know the
/// minion's key lists it as pending, as at a start.
pub async fn check_masters(config: &MinionConfig) -> Vec<Finding> {
    try_masters(config).await.into_iter().map(|one| one.finding).collect()
}

/// As [`check_masters`], with the answers; all masters are tried at the same time.
pub async fn try_masters(config: &MinionConfig) -> Vec<Try> {
    if config.is_masterless() || config.is_local() || config.master_type == "func" {
        return Vec::new();
    }
    let tries = config.masters().into_iter().map(|(host, port)| async move {
        let master = Address { host, port };
        let tried = timeout(TRY_TIMEOUT, try_master(config, &master)).await;
        let (answer, finding) =
            tried.unwrap_or_else(|_| unreachable(&master, &format!("no answer within {TRY_TIMEOUT:?}")));
        Try { master: (master.host, master.port), answer, finding }
    });
    futures::future::join_all(tries).await
}

/// Returns the finding about a master that does not answer as one.
fn unreachable(master: &Address, reason: &str) -> (Answer, Finding) {
    let Address { host, port } = master;
    let finding = Finding::broken(format!(
        "the master {host}:{port} does not answer: {reason}; compare 'master' and 'master_port' with the master's host \
         and its ret_port (4506), and see whether it runs"
    ));
    (Answer::Unreachable, finding)
}

async fn try_master(config: &MinionConfig, master: &Address) -> (Answer, Finding) {
    let Address { host, port } = master;
    match tokio::net::lookup_host((host.as_str(), *port)).await.map(|mut addresses| addresses.next()) {
        Ok(Some(_)) => {}
        Ok(None) => {
            let finding = Finding::broken(format!("option 'master': the name '{host}' has no address"));
            return (Answer::Unresolved, finding);
        }
        Err(error) => {
            let finding = Finding::broken(format!("option 'master': resolving the name '{host}' failed: {error}"));
            return (Answer::Unresolved, finding);
        }
    }
    let key = PrivateKey::load(config.pki_dir.join("minion.pem"), None);
    let (Ok(id), Ok(Some(key))) = (minion_id(config), key) else {
        // Without a key there is nothing to ask the master for.
        return match TcpStream::connect((host.as_str(), *port)).await {
            Ok(_) => (Answer::Accepted(None), Finding::note(format!("the master {host}:{port} accepts connections"))),
            Err(error) => unreachable(master, &error.to_string()),
        };
    };
    let known_key = std::fs::read_to_string(config.pki_dir.join(MASTER_KEY)).ok();
    let known_key = known_key.and_then(|pem| PublicKey::from_pem(&pem).ok());
    let crypto = Executor::new("check", 1, 10);
    let channel = Arc::new(Channel::for_check(id, Arc::new(config.clone()), Arc::new(key), master, known_key, crypto));
    match channel.authenticate().await {
        Ok(()) => {}
        Err(ChannelError::Transport(error @ (TransportError::PublishPort | TransportError::RequestPort))) => {
            return (Answer::Unreachable, Finding::broken(format!("{host}:{port}: {error}")));
        }
        Err(error @ (ChannelError::Transport(_) | ChannelError::Wire(_))) => {
            return unreachable(master, &error.to_string());
        }
        Err(error @ (ChannelError::Pending(_) | ChannelError::Full | ChannelError::Deferred(_))) => {
            let answer = if matches!(error, ChannelError::Full) { Answer::Refused } else { Answer::Pending };
            return (answer, Finding::warning(format!("{host}:{port}: {error}")));
        }
        Err(error) => {
            let answer = match error {
                ChannelError::Rejected(_) => Answer::Rejected,
                ChannelError::ChangedMaster(_) | ChannelError::WrongFingerprint { .. } | ChannelError::Unsigned => {
                    Answer::ChangedKey
                }
                _ => Answer::Refused,
            };
            return (answer, Finding::broken(format!("{host}:{port}: {error}")));
        }
    }
    let accepted = format!("the master {host}:{port} has accepted this minion's key");
    if config.transport.is_tcp() {
        return (Answer::Accepted(None), Finding::note(accepted));
    }
    let Some(endpoint @ Endpoint::Tcp(_, publish_port)) = &channel.publish_endpoint() else {
        return (Answer::Accepted(None), Finding::note(accepted));
    };
    match Subscriber::connect(endpoint, &[b""], Limits::default()).await {
        Ok(_) => (
            Answer::Accepted(Some(*publish_port)),
            Finding::note(format!("{accepted}, and publishes at port {publish_port}")),
        ),
        Err(error) => {
            let finding = Finding::broken(format!(
                "{accepted}, but its publish port does not answer: {error}; open the port {publish_port} to this minion, \
                 or correct 'publish_port'"
            ));
            (Answer::NoPublishPort, finding)
        }
    }
}
