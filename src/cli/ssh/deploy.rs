//! `--key-deploy`: installs the caller's public key on a host.

use anyhow::Context;
use brine_ids::MinionId;
use brine_ssh::roster::{RosterHost, RosterOptions};
use brine_ssh::{Call, Caller};
use brine_system::files;
use brine_text::shell::quote;

/// Returns the public key beside the private one.
pub(super) fn public_key(options: &RosterOptions) -> anyhow::Result<String> {
    let key = options.key.as_deref().context("--key-deploy: name the private key with --priv or ssh_priv")?;
    let text = files::read_to_string(format!("{key}.pub"))?;
    let line = text.lines().next().unwrap_or_default().trim().to_owned();
    anyhow::ensure!(line.starts_with("ssh-") || line.starts_with("ecdsa-"), "{key}.pub is no public key of ssh");
    Ok(line)
}

/// Adds the key to the host's `authorized_keys`, unless it is there. A failure is logged: the call that follows fails
/// by itself.
pub(super) async fn install(caller: &Caller, id: &MinionId, host: &RosterHost, key: &str) {
    let key = quote(key);
    let line = format!(
        "umask 077; mkdir -p ~/.ssh && touch ~/.ssh/authorized_keys && \
         {{ grep -qxF {key} ~/.ssh/authorized_keys || printf '%s\\n' {key} >> ~/.ssh/authorized_keys; }}"
    );
    // As the login user, to whom the key is to belong.
    let own = RosterHost { sudo: false, sudo_user: None, ..host.clone() };
    let reply = caller.call(id, &own, &Call::Raw(line)).await;
    if reply.retcode != 0 {
        tracing::error!(host = %id, result = %reply.value, "installing the public key failed");
    }
}
