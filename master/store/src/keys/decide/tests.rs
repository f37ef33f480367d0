use brine_value::map;

use super::super::tests::{PEM, PEM2, store};
use super::*;

/// Returns the decision for a minion with this key text. Invalid text is rejected before any decision.
fn decide(store: &KeyStore, config: &MasterConfig, id: &MinionId, pem: &str, grains: &Map) -> Decision {
    PublicKey::from_pem(pem).map_or(Decision::Reject, |key| store.decide(config, id, &key, grains).unwrap())
}

fn id() -> MinionId {
    "m1".parse().unwrap()
}

/// A case: the known state, the change to the configuration, the submitted key, the decision, and the states of the
/// minion's keys afterwards (`2` marks the second key).
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
    for (name, initial_state, configure, key, decision, left) in cases {
        let (_folder, store) = store();
        let mut config = MasterConfig::default();
        configure(&mut config);
        if let Some(state) = initial_state {
            store.set(&id(), *state, PEM).unwrap();
        }
        assert_eq!(decide(&store, &config, &id(), key, &Map::new()), *decision, "{name}");
        assert_eq!(states(&store), *left, "{name}");
    }
}

fn states(store: &KeyStore) -> String {
    let describe = |state: KeyState| {
        let pem = store.get(state, &id()).unwrap()?;
        Some(format!("{}{}", state.word(), if pem == PublicKey::from_pem(PEM2).unwrap().to_pem() { "2" } else { "" }))
    };
    KeyState::ALL.into_iter().filter_map(describe).collect::<Vec<_>>().join(" ")
}

#[test]
fn autosign_and_autoreject_files_decide() {
    let (directory, store) = store();
    let file = directory.path().join("names");
    std::fs::write(&file, "# all of ours\nm*\n").unwrap();
    let autoreject = MasterConfig { autoreject_file: Some(file.clone()), auto_accept: true, ..Default::default() };
    let autosign = MasterConfig { autosign_file: Some(file), ..Default::default() };
    assert_eq!(decide(&store, &autosign, &id(), PEM, &Map::new()), Decision::Accept);
    store.set(&id(), KeyState::Pending, PEM).unwrap();
    // The pending key is rejected, whichever key the minion sends.
    assert_eq!(decide(&store, &autoreject, &id(), PEM2, &Map::new()), Decision::Reject);
    assert_eq!(states(&store), "rejected");
    let new = "m2".parse().unwrap();
    assert_eq!(decide(&store, &autoreject, &new, PEM, &Map::new()), Decision::Reject);
    assert_eq!(store.list(KeyState::Rejected).unwrap().len(), 2);
}

#[test]
fn autosign_grains_accept_a_minion() {
    let (directory, store) = store();
    std::fs::write(directory.path().join("uuid"), "# ours\n4711\n").unwrap();
    let config = MasterConfig { autosign_grains_dir: Some(directory.path().to_owned()), ..Default::default() };
    assert_eq!(decide(&store, &config, &id(), PEM, &map! {"uuid" => "0815"}), Decision::Pend);
    assert_eq!(decide(&store, &config, &id(), PEM, &map! {"uuid" => 4711}), Decision::Accept);
}

#[test]
fn max_minions_refuses_new_minions_and_keeps_accepted_ones() {
    let (_folder, store) = store();
    let config = MasterConfig { max_minions: 1, auto_accept: true, ..Default::default() };
    let other = "m2".parse().unwrap();
    assert_eq!(decide(&store, &config, &id(), PEM, &Map::new()), Decision::Accept);
    assert_eq!(decide(&store, &config, &other, PEM2, &Map::new()), Decision::Full);
    assert_eq!(store.current(&other).unwrap(), None);
    assert_eq!(decide(&store, &config, &id(), PEM, &Map::new()), Decision::Accept);
}

#[test]
fn the_number_of_pending_keys_is_bounded() {
    let (_folder, store) = store();
    let config = MasterConfig { max_pending_keys: 2, ..Default::default() };
    let ask = |config: &MasterConfig, id: &str| decide(&store, config, &id.parse().unwrap(), PEM, &Map::new());
    let decisions = ["a", "b", "c", "a"].map(|id| ask(&config, id));
    assert_eq!(decisions, [Decision::Pend, Decision::Pend, Decision::Full, Decision::Pend]);
    assert_eq!(store.list(KeyState::Pending).unwrap(), ["a", "b"]);
    let accepting = MasterConfig { auto_accept: true, ..config };
    assert_eq!(ask(&accepting, "c"), Decision::Accept);
}

#[test]
fn ids_with_special_characters_wait_for_an_operator() {
    let (_folder, store) = store();
    for config in [
        MasterConfig { auto_accept: true, ..Default::default() },
        MasterConfig { open_mode: true, ..Default::default() },
    ] {
        for id in ["*", "$(id)", "\"*\" #_youshi", "a b"] {
            let id = id.parse().unwrap();
            assert_eq!(decide(&store, &config, &id, PEM, &Map::new()), Decision::Pend, "{id}");
        }
    }
}

#[test]
fn nothing_but_the_key_is_stored() {
    let (_folder, store) = store();
    let text = format!("text in front\n{PEM}\n\x1b[2Jtext behind\n{}", "x".repeat(1 << 20));
    if let Ok(key) = PublicKey::from_pem(&text) {
        store.decide(&MasterConfig::default(), &id(), &key, &Map::new()).unwrap();
        let stored = store.get(KeyState::Pending, &id()).unwrap().unwrap();
        assert_eq!(stored, PublicKey::from_pem(PEM).unwrap().to_pem());
    }
    store.set(&id(), KeyState::Accepted, &format!("{PEM}\ntrailing")).unwrap();
    let stored = store.get(KeyState::Accepted, &id()).unwrap().unwrap();
    assert_eq!(stored, PublicKey::from_pem(PEM).unwrap().to_pem());
}

#[test]
fn a_file_without_a_key_counts_as_absent_unless_it_rejects() {
    let (_folder, store) = store();
    for (state, decision) in [
        (KeyState::Accepted, Decision::Pend),
        (KeyState::Pending, Decision::Pend),
        (KeyState::Rejected, Decision::Reject),
    ] {
        for other in KeyState::ALL {
            let _ = std::fs::remove_file(store.path(other, &id()));
        }
        std::fs::write(store.path(state, &id()), "").unwrap();
        assert_eq!(decide(&store, &MasterConfig::default(), &id(), PEM, &Map::new()), decision, "{state:?}");
    }
}

#[test]
fn only_the_first_denied_key_is_kept() {
    let (_folder, store) = store();
    let config = MasterConfig::default();
    store.set(&id(), KeyState::Accepted, PEM).unwrap();
    store.set(&id(), KeyState::Denied, PEM).unwrap();
    assert_eq!(decide(&store, &config, &id(), PEM2, &Map::new()), Decision::Denied);
    assert_eq!(states(&store), "accepted denied");
}

#[test]
fn of_two_simultaneous_keys_for_a_new_id_one_is_denied() {
    let (_folder, store) = store();
    let ask = |pem| decide(&store, &MasterConfig::default(), &id(), pem, &Map::new());
    let mut reported = std::thread::scope(|scope| {
        let tasks = [PEM, PEM2].map(|pem| scope.spawn(move || ask(pem)));
        tasks.map(|task| task.join().unwrap().act())
    });
    reported.sort_unstable();
    assert_eq!(reported, ["denied", "pend"]);
}

#[test]
fn the_layout_of_the_pem_text_does_not_matter() {
    let (_folder, store) = store();
    store.set(&id(), KeyState::Accepted, PEM).unwrap();
    for text in [PEM.trim().to_owned(), PEM.replace('\n', "\r\n"), format!("\n{PEM}\n")] {
        let decision = decide(&store, &MasterConfig::default(), &id(), &text, &Map::new());
        assert_eq!(decision, Decision::Accept, "{text}");
    }
}
