//! What can be said of a minion before it starts: who it is, and which master it would take for its own.

use brine_core::config::MinionConfig;
use brine_core::crypt::{PrivateKey, PublicKey};
use brine_core::files;

use crate::channel::{ChannelError, MASTER_KEY};
use crate::daemon::{MinionError, minion_id};

/// Looks at what a minion with this configuration would start on, and changes nothing: a line for each finding.
pub fn check(config: &MinionConfig) -> Result<Vec<String>, MinionError> {
    let id = minion_id(config)?;
    let pki_dir = config.pki_dir.display();
    let own = PrivateKey::load(config.pki_dir.join("minion.pem"), None).map_err(ChannelError::from)?;
    let own = own.map_or_else(
        || "no key of this minion's; the first start makes one, which the master has to accept".to_owned(),
        |key| format!("this minion's key {}", key.public().fingerprint()),
    );
    let known = files::read_if_exists(config.pki_dir.join(MASTER_KEY))?.map(|pem| PublicKey::from_pem(&pem));
    let known = known.transpose().map_err(ChannelError::from)?.map_or_else(
        || "no master's key; the first master that answers is the one from then on".to_owned(),
        |key| format!("the master's key {}", key.fingerprint()),
    );
    let host = config.master.first().ok_or(MinionError::NoMaster)?;
    let mut lines = vec![format!("the minion '{id}' of the master {host}:{}", config.master_port)];
    lines.extend(config.master.get(1).map(|_| format!("of several masters only {host} is tried")));
    lines.extend([format!("{pki_dir}: {own}"), format!("{pki_dir}: {known}")]);
    Ok(lines)
}
