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

/// Tries to reach the masters of the configuration. Nothing is stored on this host; a master that does not know the
/// minion's key lists it as pending, as at a start.
pub async fn check_masters(config: &MinionConfig) -> Vec<Finding> {
    if config.is_masterless() || config.is_local() || config.master_type == "func" {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (host, port) in config.masters() {
        let master = Address { host, port };
        let found = timeout(TRY_TIMEOUT, try_master(config, &master)).await;
        findings.push(found.unwrap_or_else(|_| unreachable(&master, &format!("no answer within {TRY_TIMEOUT:?}"))));
    }
    findings
}

/// Returns the finding about a master that does not answer as one.
fn unreachable(master: &Address, reason: &str) -> Finding {
    let Address { host, port } = master;
    Finding::broken(format!(
        "the master {host}:{port} does not answer: {reason}; compare 'master' and 'master_port' with the master's host \
         and its ret_port (4506), and see whether it runs"
    ))
}

async fn try_master(config: &MinionConfig, master: &Address) -> Finding {
    let Address { host, port } = master;
    match tokio::net::lookup_host((host.as_str(), *port)).await.map(|mut addresses| addresses.next()) {
        Ok(Some(_)) => {}
        Ok(None) => return Finding::broken(format!("option 'master': the name '{host}' has no address")),
        Err(error) => {
            return Finding::broken(format!("option 'master': resolving the name '{host}' failed: {error}"));
        }
    }
    let key = PrivateKey::load(config.pki_dir.join("minion.pem"), None);
    let (Ok(id), Ok(Some(key))) = (minion_id(config), key) else {
        // Without a key there is nothing to ask the master for.
        return match TcpStream::connect((host.as_str(), *port)).await {
            Ok(_) => Finding::note(format!("the master {host}:{port} accepts connections")),
            Err(error) => unreachable(master, &error.to_string()),
        };
    };
    let known = std::fs::read_to_string(config.pki_dir.join(MASTER_KEY)).ok();
    let known = known.and_then(|pem| PublicKey::from_pem(&pem).ok());
    let crypto = Executor::new("check", 1, 10);
    let channel = Arc::new(Channel::for_check(id, Arc::new(config.clone()), Arc::new(key), master, known, crypto));
    match channel.authenticate().await {
        Ok(()) => {}
        Err(ChannelError::Transport(error @ (TransportError::PublishPort | TransportError::RequestPort))) => {
            return Finding::broken(format!("{host}:{port}: {error}"));
        }
        Err(error @ (ChannelError::Transport(_) | ChannelError::Wire(_))) => {
            return unreachable(master, &error.to_string());
        }
        Err(error @ (ChannelError::Pending(_) | ChannelError::Full | ChannelError::Deferred(_))) => {
            return Finding::warning(format!("{host}:{port}: {error}"));
        }
        Err(error) => return Finding::broken(format!("{host}:{port}: {error}")),
    }
    let accepted = format!("the master {host}:{port} has accepted this minion's key");
    if config.transport.is_tcp() {
        return Finding::note(accepted);
    }
    let Some(endpoint @ Endpoint::Tcp(_, publish_port)) = &channel.publish_endpoint() else {
        return Finding::note(accepted);
    };
    match Subscriber::connect(endpoint, &[b""], Limits::default()).await {
        Ok(_) => Finding::note(format!("{accepted}, and publishes at port {publish_port}")),
        Err(error) => Finding::broken(format!(
            "{accepted}, but its publish port does not answer: {error}; open the port {publish_port} to this minion, or \
             correct 'publish_port'"
        )),
    }
}
