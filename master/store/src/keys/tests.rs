//! Tests of the key directories.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// Two keys that are used only in these tests.
pub(super) const PEM: &str = include_str!("testdata/one.pub");
pub(super) const PEM2: &str = include_str!("testdata/two.pub");

pub(super) fn store() -> (tempfile::TempDir, KeyStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = KeyStore::open(directory.path().join("pki")).unwrap();
    (directory, store)
}

fn id(text: &str) -> MinionId {
    text.parse().unwrap()
}

fn key(text: &str, state: KeyState) -> Key {
    Key { id: id(text), state }
}

/// Returns all keys, as `directory/id`.
fn all(store: &KeyStore) -> String {
    let keys = store.select("*", &KeyState::ALL).unwrap();
    keys.iter().map(|key| format!("{}/{}", key.state.directory(), key.id)).collect::<Vec<_>>().join(" ")
}

#[test]
fn directories_are_created_for_their_owner_only() {
    let (directory, _store) = store();
    let pki = directory.path().join("pki");
    fs::set_permissions(&pki, Permissions::from_mode(0o755)).unwrap();
    KeyStore::open(&pki).unwrap();
    for name in ["", "minions", "minions_pre", "minions_rejected", "minions_denied", "minions_autosign"] {
        let mode = fs::metadata(pki.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{name}");
    }
}

#[test]
fn a_directory_error_names_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pki");
    fs::write(&file, "").unwrap();
    let reported = KeyStore::open(&file).err().unwrap().to_string();
    assert_eq!(reported, format!("cannot create {}: not a directory", file.display()));
}

#[test]
fn lists_sort_case_insensitively_and_skip_other_files() {
    let (_folder, store) = store();
    for name in ["b", "A", "a", "C"] {
        store.set(&id(name), KeyState::Accepted, PEM).unwrap();
    }
    let directory = store.pki_dir().join("minions");
    fs::write(directory.join(".key_cache"), "").unwrap();
    fs::write(directory.join("x\ny"), PEM).unwrap();
    fs::create_dir(directory.join("folder")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", directory.join("link")).unwrap();
    assert_eq!(store.list(KeyState::Accepted).unwrap(), ["A", "a", "b", "C"]);
    assert_eq!(store.count_accepted().unwrap(), 4);
    assert_eq!(store.get(KeyState::Accepted, &id("link")).unwrap(), None);
    assert_eq!(store.get(KeyState::Accepted, &id("folder")).unwrap(), None);
}

#[test]
fn setting_a_key_removes_other_states_but_not_denied_keys() {
    let (_folder, store) = store();
    for (state, left) in [
        (KeyState::Pending, "minions_pre/m1"),
        (KeyState::Denied, "minions_pre/m1 minions_denied/m1"),
        (KeyState::Accepted, "minions/m1 minions_denied/m1"),
        (KeyState::Rejected, "minions_rejected/m1 minions_denied/m1"),
    ] {
        store.set(&id("m1"), state, PEM).unwrap();
        assert_eq!(all(&store), left);
        assert_eq!(store.get(state, &id("m1")).unwrap().as_deref(), Some(PEM));
    }
    let mode = fs::metadata(store.path(KeyState::Rejected, &id("m1"))).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    assert!(matches!(store.set(&id("m2"), KeyState::Pending, "x"), Err(KeyError::NotAKey { .. })));
}

#[test]
fn after_a_crash_the_stricter_of_two_states_holds() {
    let (_folder, store) = store();
    for state in [KeyState::Denied, KeyState::Accepted, KeyState::Pending, KeyState::Rejected] {
        fs::write(store.path(state, &id("m1")), PEM).unwrap();
        let current = store.current(&id("m1")).unwrap().map(|(state, _)| state);
        assert_eq!(current, (state != KeyState::Denied).then_some(state));
    }
}

#[test]
fn actions_move_keys_between_states() {
    use KeyState::{Accepted, Denied, Pending, Rejected};
    for (act, from, left) in [
        (Act::Accept, Pending, "minions/m1"),
        (Act::Accept, Rejected, "minions/m1"),
        (Act::Accept, Denied, "minions/m1"),
        (Act::Reject, Pending, "minions_rejected/m1"),
        (Act::Reject, Accepted, "minions_rejected/m1"),
        (Act::Reject, Denied, "minions_rejected/m1"),
        (Act::Delete, Pending, ""),
        (Act::Delete, Accepted, ""),
        (Act::Delete, Rejected, ""),
        (Act::Delete, Denied, ""),
    ] {
        let (_folder, store) = store();
        store.set(&id("m1"), from, PEM).unwrap();
        let results = store.apply(act, &[key("m1", from)]);
        assert!(matches!(&results[..], [(changed, Ok(()))] if *changed == key("m1", from)), "{act:?} {from:?}");
        assert_eq!(all(&store), left, "{act:?} {from:?}");
        let again = store.apply(act, &[key("m2", from)]).remove(0).1.unwrap_err();
        assert_eq!(again.to_string(), format!("there is no {} key of m2", from.word()));
    }
}

#[test]
fn invalid_public_keys_are_not_accepted() {
    let (_folder, store) = store();
    fs::write(store.path(KeyState::Pending, &id("bad")), "garbage\n").unwrap();
    store.set(&id("good"), KeyState::Pending, PEM).unwrap();
    let keys = store.select("*", &[KeyState::Pending]).unwrap();
    let results = store.apply(Act::Accept, &keys);
    let reported = results[0].1.as_ref().unwrap_err().to_string();
    assert_eq!(reported, "the key of bad: this is not a usable RSA key: it has no BEGIN and END line of a PEM file");
    assert!(results[1].1.is_ok());
    assert_eq!(all(&store), "minions_pre/bad minions/good");
    assert!(store.finger(&key("bad", KeyState::Pending)).is_err());
}

#[test]
fn globs_and_comma_separated_globs_select() {
    let (_folder, store) = store();
    for (name, state) in [("web1", KeyState::Pending), ("web2", KeyState::Accepted), ("db1", KeyState::Rejected)] {
        store.set(&id(name), state, PEM).unwrap();
    }
    for (pattern, states, selected) in [
        ("*", &KeyState::ALL[..], "web1 db1 web2"),
        ("web*", &KeyState::ALL, "web1 web2"),
        ("web2,db*", &KeyState::ALL, "db1 web2"),
        ("web?", &[KeyState::Pending], "web1"),
        ("WEB1", &KeyState::ALL, ""),
        ("", &KeyState::ALL, ""),
        ("../*", &KeyState::ALL, ""),
    ] {
        let keys = store.select(pattern, states).unwrap();
        let ids: Vec<_> = keys.iter().map(|key| key.id.as_str()).collect();
        assert_eq!(ids.join(" "), selected, "{pattern}");
    }
}

#[test]
fn both_halves_of_a_pair_have_the_same_fingerprint() {
    let (_folder, store) = store();
    let pair = PrivateKey::load_or_generate(store.pki_dir(), "master", 2048).unwrap();
    assert_eq!(store.local().unwrap(), ["master.pem", "master.pub"]);
    for name in store.local().unwrap() {
        assert_eq!(store.local_finger(&name).unwrap(), pair.public().fingerprint());
    }
    store.set(&id("m1"), KeyState::Accepted, PEM).unwrap();
    let finger = store.finger(&key("m1", KeyState::Accepted)).unwrap();
    assert_eq!(finger, PublicKey::from_pem(PEM).unwrap().fingerprint());
}

#[test]
fn state_words_match_by_prefix() {
    for (word, states) in [
        ("un", Some("unaccepted")),
        ("pre", Some("unaccepted")),
        ("accepted", Some("accepted")),
        ("rej", Some("rejected")),
        ("denied", Some("denied")),
        ("all", Some("unaccepted rejected accepted denied")),
        ("bogus", None),
        ("", None),
    ] {
        let actual = KeyState::of_word(word).map(|all| all.iter().map(|s| s.word()).collect::<Vec<_>>().join(" "));
        assert_eq!(actual.as_deref(), states, "{word}");
    }
}
