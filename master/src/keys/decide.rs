//! What becomes of a minion that asks to join (`_auth`), and what that leaves in the folders of keys.

use brine_core::config::MasterConfig;
use brine_core::minion_id::MinionId;
use brine_core::{Map, crypt::PublicKey};

use super::{KeyError, KeyState, KeyStore};

/// What a minion that asks to join is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may join; its key is among the accepted ones.
    Accept,
    /// An operator has to decide; its key is among the pending ones.
    Pend,
    /// It may not join.
    Reject,
    /// It shows another key than the known one, which is kept among the denied ones.
    Denied,
    /// There are `max_minions` already.
    Full,
}

impl Decision {
    /// The word in `salt/auth` events.
    pub fn act(self) -> &'static str {
        match self {
            Decision::Accept => "accept",
            Decision::Pend => "pend",
            Decision::Reject => "reject",
            Decision::Denied => "denied",
            Decision::Full => "full",
        }
    }

    /// `result` in `salt/auth` events: the minion may go on, or go on waiting.
    pub fn result(self) -> bool {
        matches!(self, Decision::Accept | Decision::Pend)
    }
}

impl KeyStore {
    /// Decides about a minion that asks to join with this public key, and keeps the key where it
    /// belongs. `autosign_grains` are those that the minion sent along.
    ///
    /// The rules are Salt's, with these differences: a text that is no public key is rejected and not
    /// kept at all; `max_minions` counts accepted keys; a file in `minions_autosign` is used up only by
    /// a minion that needs it; in `open_mode` every key that joins is kept as accepted.
    pub fn decide(
        &self,
        config: &MasterConfig,
        id: &MinionId,
        pem: &str,
        autosign_grains: &Map,
    ) -> Result<Decision, KeyError> {
        let mut autosign = self.autosign.lock();
        let pem = pem.trim();
        let current = self.current(id)?;
        let known = current.as_ref().map(|(state, _)| *state);
        let same = current.as_ref().is_some_and(|(_, current)| is_same(current, pem));
        let is_full = || Ok::<_, KeyError>(config.max_minions > 0 && self.count_accepted()? >= config.max_minions);
        if known != Some(KeyState::Accepted) && is_full()? {
            tracing::info!(minion = %id, max_minions = config.max_minions, "there are as many minions as may be");
            return Ok(Decision::Full);
        }
        if !same && PublicKey::from_pem(pem).is_err() {
            tracing::warn!(minion = %id, "what was sent as a public key is none");
            return Ok(Decision::Reject);
        }
        let decision = match known {
            Some(KeyState::Accepted) if same => return Ok(Decision::Accept),
            _ if config.open_mode => Decision::Accept,
            Some(KeyState::Rejected) => return Ok(Decision::Reject),
            None | Some(KeyState::Pending) if autosign.rejects(config, id) => Decision::Reject,
            None if autosign.accepts(config, id, autosign_grains) => Decision::Accept,
            None => Decision::Pend,
            Some(KeyState::Pending) if same && autosign.accepts(config, id, autosign_grains) => Decision::Accept,
            Some(KeyState::Pending) if same => return Ok(Decision::Pend),
            Some(_) => Decision::Denied,
        };
        let kept = match (decision, &current) {
            // The pending key is what the operator has seen, so that is what moves.
            (Decision::Reject, Some((_, pending))) => (KeyState::Rejected, pending.as_str()),
            (Decision::Reject, None) => (KeyState::Rejected, pem),
            (Decision::Accept, _) => (KeyState::Accepted, pem),
            (Decision::Denied, _) => (KeyState::Denied, pem),
            (Decision::Pend | Decision::Full, _) => (KeyState::Pending, pem),
        };
        self.set(id, kept.0, kept.1)?;
        if decision == Decision::Denied {
            tracing::error!(minion = %id, "another key than the known one was shown: it may be an attack");
        } else {
            tracing::info!(minion = %id, act = decision.act(), "a key was decided about");
        }
        Ok(decision)
    }
}

/// Whether two texts are the same key: line ends and blanks around them do not count.
fn is_same(one: &str, other: &str) -> bool {
    let packed = |text: &str| text.split_ascii_whitespace().collect::<String>();
    packed(one) == packed(other)
}

#[cfg(test)]
mod tests {
    use brine_core::map;

    use super::super::tests::{PEM, PEM2, store};
    use super::*;

    fn id() -> MinionId {
        "m1".parse().unwrap()
    }

    /// What is known, how the master is configured, what is shown, the decision, and the states that
    /// the minion has keys in afterwards (`2` behind those that hold the second key).
    type Case = (&'static str, Option<KeyState>, fn(&mut MasterConfig), &'static str, Decision, &'static str);

    #[test]
    fn requests_are_decided_as_salt_does() {
        use Decision::{Accept, Denied, Pend, Reject};
        use KeyState::{Accepted, Pending, Rejected};
        let plain: fn(&mut MasterConfig) = |_| {};
        let auto: fn(&mut MasterConfig) = |config| config.auto_accept = true;
        let open: fn(&mut MasterConfig) = |config| config.open_mode = true;
        let cases: &[Case] = &[
            ("new", None, plain, PEM, Pend, "unaccepted"),
            ("new, auto_accept", None, auto, PEM, Accept, "accepted"),
            ("new, open_mode", None, open, PEM, Accept, "accepted"),
            ("new, no key", None, auto, "garbage", Reject, ""),
            ("new, empty key, open_mode", None, open, "", Reject, ""),
            ("pending", Some(Pending), plain, PEM, Pend, "unaccepted"),
            ("pending, auto_accept", Some(Pending), auto, PEM, Accept, "accepted"),
            ("pending, changed", Some(Pending), plain, PEM2, Denied, "unaccepted denied2"),
            ("pending, changed, auto_accept", Some(Pending), auto, PEM2, Denied, "unaccepted denied2"),
            ("pending, changed, open_mode", Some(Pending), open, PEM2, Accept, "accepted2"),
            ("accepted", Some(Accepted), plain, PEM, Accept, "accepted"),
            ("accepted, changed", Some(Accepted), plain, PEM2, Denied, "accepted denied2"),
            ("accepted, changed, auto_accept", Some(Accepted), auto, PEM2, Denied, "accepted denied2"),
            ("accepted, changed, open_mode", Some(Accepted), open, PEM2, Accept, "accepted2"),
            ("accepted, no key", Some(Accepted), open, "garbage", Reject, "accepted"),
            ("rejected", Some(Rejected), plain, PEM, Reject, "rejected"),
            ("rejected, auto_accept", Some(Rejected), auto, PEM, Reject, "rejected"),
            ("rejected, changed", Some(Rejected), plain, PEM2, Reject, "rejected"),
            ("rejected, open_mode", Some(Rejected), open, PEM, Accept, "accepted"),
        ];
        for (name, known, configure, shown, decision, left) in cases {
            let (_folder, store) = store();
            let mut config = MasterConfig::default();
            configure(&mut config);
            if let Some(state) = known {
                store.set(&id(), *state, PEM).unwrap();
            }
            assert_eq!(store.decide(&config, &id(), shown, &Map::new()).unwrap(), *decision, "{name}");
            assert_eq!(states(&store), *left, "{name}");
        }
    }

    fn states(store: &KeyStore) -> String {
        let describe = |state: KeyState| {
            let pem = store.get(state, &id()).unwrap()?;
            Some(format!("{}{}", state.word(), if is_same(&pem, PEM2) { "2" } else { "" }))
        };
        KeyState::ALL.into_iter().filter_map(describe).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn files_of_names_accept_and_reject() {
        let (folder, store) = store();
        let file = folder.path().join("names");
        std::fs::write(&file, "# all of ours\nm*\n").unwrap();
        let autoreject = MasterConfig { autoreject_file: Some(file.clone()), auto_accept: true, ..Default::default() };
        let autosign = MasterConfig { autosign_file: Some(file), ..Default::default() };
        assert_eq!(store.decide(&autosign, &id(), PEM, &Map::new()).unwrap(), Decision::Accept);
        store.set(&id(), KeyState::Pending, PEM).unwrap();
        // Whatever key it shows, the pending one is rejected.
        assert_eq!(store.decide(&autoreject, &id(), PEM2, &Map::new()).unwrap(), Decision::Reject);
        assert_eq!(states(&store), "rejected");
        let new = "m2".parse().unwrap();
        assert_eq!(store.decide(&autoreject, &new, PEM, &Map::new()).unwrap(), Decision::Reject);
        assert_eq!(store.list(KeyState::Rejected).unwrap().len(), 2);
    }

    #[test]
    fn grains_accept() {
        let (folder, store) = store();
        std::fs::write(folder.path().join("uuid"), "# ours\n4711\n").unwrap();
        let config = MasterConfig { autosign_grains_dir: Some(folder.path().to_owned()), ..Default::default() };
        assert_eq!(store.decide(&config, &id(), PEM, &map! {"uuid" => "0815"}).unwrap(), Decision::Pend);
        assert_eq!(store.decide(&config, &id(), PEM, &map! {"uuid" => 4711}).unwrap(), Decision::Accept);
    }

    #[test]
    fn no_more_than_max_minions_join_and_those_who_have_stay() {
        let (_folder, store) = store();
        let config = MasterConfig { max_minions: 1, auto_accept: true, ..Default::default() };
        let other = "m2".parse().unwrap();
        assert_eq!(store.decide(&config, &id(), PEM, &Map::new()).unwrap(), Decision::Accept);
        assert_eq!(store.decide(&config, &other, PEM2, &Map::new()).unwrap(), Decision::Full);
        assert_eq!(store.current(&other).unwrap(), None);
        assert_eq!(store.decide(&config, &id(), PEM, &Map::new()).unwrap(), Decision::Accept);
    }

    #[test]
    fn only_the_first_denied_key_is_kept() {
        let (_folder, store) = store();
        let config = MasterConfig::default();
        store.set(&id(), KeyState::Accepted, PEM).unwrap();
        store.set(&id(), KeyState::Denied, PEM).unwrap();
        assert_eq!(store.decide(&config, &id(), PEM2, &Map::new()).unwrap(), Decision::Denied);
        assert_eq!(states(&store), "accepted denied");
    }

    #[test]
    fn of_two_keys_at_once_for_a_new_id_one_waits_and_one_is_denied() {
        let (_folder, store) = store();
        let ask = |pem| store.decide(&MasterConfig::default(), &id(), pem, &Map::new()).unwrap();
        let mut told = std::thread::scope(|scope| {
            let tasks = [PEM, PEM2].map(|pem| scope.spawn(move || ask(pem)));
            tasks.map(|task| task.join().unwrap().act())
        });
        told.sort_unstable();
        assert_eq!(told, ["denied", "pend"]);
    }

    #[test]
    fn the_layout_of_the_text_makes_no_other_key() {
        let (_folder, store) = store();
        store.set(&id(), KeyState::Accepted, PEM).unwrap();
        for shown in [PEM.trim().to_owned(), PEM.replace('\n', "\r\n"), format!("\n{PEM}\n")] {
            let decision = store.decide(&MasterConfig::default(), &id(), &shown, &Map::new()).unwrap();
            assert_eq!(decision, Decision::Accept, "{shown}");
        }
    }
}
