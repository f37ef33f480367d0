//! Decides about the keys of minions that authenticate (`_auth`), and stores them.

use brine_config::MasterConfig;
use brine_crypt::PublicKey;
use brine_ids::MinionId;
use brine_value::Map;

use super::{KeyError, KeyState, KeyStore};
use crate::autosign::AcceptedBy;
use crate::metrics;

/// The decision about a minion's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Its key is accepted.
    Accept,
    /// Its key is pending: an operator has to decide.
    Pend,
    /// Its key is rejected.
    Reject,
    /// The key is denied: a different key is known for the id.
    Denied,
    /// `max_minions` is reached.
    Full,
}

impl Decision {
    /// Returns the value of `act` in `salt/auth` events.
    pub fn act(self) -> &'static str {
        match self {
            Decision::Accept => "accept",
            Decision::Pend => "pend",
            Decision::Reject => "reject",
            Decision::Denied => "denied",
            Decision::Full => "full",
        }
    }

    /// Returns the value of `result` in `salt/auth` events: whether the minion is accepted or pending.
    pub fn result(self) -> bool {
        matches!(self, Decision::Accept | Decision::Pend)
    }
}

impl KeyStore {
    /// Decides about a minion with this public key, and stores the key, encoded again. `autosign_grains` are the grains
    /// that the minion sent for it.
    ///
    /// The rules are Salt's, with these differences: `max_minions` counts accepted keys; `max_pending_keys` limits the
    /// others; a file in `minions_autosign` is used up only by a minion that needs it; in `open_mode` every key is
    /// stored as accepted; an id with special characters ([`MinionId::is_plain`]) is never accepted without an
    /// operator; a file without a valid public key counts as missing.
    pub fn decide(
        &self,
        config: &MasterConfig,
        id: &MinionId,
        key: &PublicKey,
        autosign_grains: &Map,
    ) -> Result<Decision, KeyError> {
        // Of two simultaneous requests for a new id only one may win.
        let _deciding = self.lock(id);
        let pem = key.to_pem();
        let stored = self.current(id)?;
        let is_first = stored.is_none();
        let current = stored.and_then(|(state, stored)| match is_same(&stored, &pem, key) {
            // Applies to an invalid key file as well: the operator has rejected the id.
            None if state == KeyState::Rejected => Some((state, false)),
            same => Some((state, same?)),
        });
        let current_state = current.map(|(state, _)| state);
        let same = current.is_some_and(|(_, same)| same);
        let is_full = || Ok::<_, KeyError>(config.max_minions > 0 && self.count_accepted()? >= config.max_minions);
        if current_state != Some(KeyState::Accepted) && is_full()? {
            tracing::info!(minion = %id, max_minions = config.max_minions, "key not accepted: max_minions is reached");
            return Ok(Decision::Full);
        }
        let rejects = || self.autosign.lock().rejects(config, id);
        let mut by = None;
        let mut accepts = || {
            let rule = || self.autosign.lock().accepts(config, id, autosign_grains);
            by = self.may_autosign(config, id).then(rule).flatten();
            by.is_some()
        };
        let decision = match current_state {
            Some(KeyState::Accepted) if same => return Ok(Decision::Accept),
            _ if config.open_mode && self.may_autosign(config, id) => Decision::Accept,
            Some(KeyState::Rejected) => return Ok(Decision::Reject),
            None | Some(KeyState::Pending) if rejects() => Decision::Reject,
            None if accepts() => Decision::Accept,
            None => Decision::Pend,
            Some(KeyState::Pending) if same && accepts() => Decision::Accept,
            Some(KeyState::Pending) if same => return Ok(Decision::Pend),
            Some(_) => Decision::Denied,
        };
        let state = match decision {
            Decision::Reject => KeyState::Rejected,
            Decision::Accept => KeyState::Accepted,
            Decision::Denied => KeyState::Denied,
            Decision::Pend | Decision::Full => KeyState::Pending,
        };
        // Unauthenticated peers can choose any id, so the number of their files is limited.
        if current_state.is_none() && decision != Decision::Accept && !self.has_room(state, config.max_pending_keys)? {
            metrics::AUTHENTICATIONS_REFUSED.add(1);
            tracing::warn!(minion = %id, max_pending_keys = config.max_pending_keys, "key not stored: too many keys wait in this state; accept or delete some with salt-key");
            return Ok(if decision == Decision::Reject { Decision::Reject } else { Decision::Full });
        }
        if (decision, current_state) == (Decision::Reject, Some(KeyState::Pending)) {
            // The pending key is the one that the operator has seen.
            self.move_key(id, KeyState::Pending, state)?;
        } else {
            // No flush: after a power failure the rule accepts the key again.
            let flush = decision == Decision::Accept && !config.auto_accept && !config.open_mode;
            if is_first && !flush {
                self.store_first(id, state, &pem)?;
            } else {
                self.store(id, state, &pem, flush)?;
            }
        }
        if decision == Decision::Denied {
            tracing::error!(minion = %id, "key denied: the minion shows another key than the known one. If it was reinstalled, delete the known key (salt-key -d) and accept the new one, or accept the denied one (salt-key -a {id} --include-denied); otherwise this may be an attack or a cloned minion");
        } else if decision == Decision::Accept {
            let by = by.unwrap_or(AcceptedBy::OpenMode);
            tracing::info!(minion = %id, %by, fingerprint = %key.fingerprint(), "key accepted");
        } else {
            tracing::info!(minion = %id, act = decision.act(), fingerprint = %key.fingerprint(), "key stored");
        }
        Ok(decision)
    }

    /// Returns whether rules of the configuration may accept this id at all.
    fn may_autosign(&self, config: &MasterConfig, id: &MinionId) -> bool {
        let plain = id.is_plain();
        if !plain && (config.auto_accept || config.open_mode) {
            tracing::warn!(minion = ?id.as_str(), "key not accepted automatically: the id has special characters; accept it with salt-key");
        }
        plain
    }
}

/// Returns whether a stored text is this key; `None` if it is not a key.
fn is_same(stored: &str, pem: &str, key: &PublicKey) -> Option<bool> {
    if stored.trim() == pem.trim() {
        return Some(true);
    }
    match PublicKey::from_pem(stored) {
        Ok(stored) => Some(stored == *key),
        Err(error) => {
            tracing::error!(%error, "a stored key is ignored: its file holds no public key");
            None
        }
    }
}

#[cfg(test)]
mod tests;
