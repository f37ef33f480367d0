use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::rsa::tests::PEM;

#[test]
fn an_identity_is_generated_once_and_then_read() {
    let dir = tempfile::tempdir().unwrap();
    let made: Vec<_> = std::thread::scope(|scope| {
        let start = || scope.spawn(|| PrivateKey::load_or_generate(&dir, "minion", 2048).unwrap().public());
        let running = [start(), start()];
        running.map(|thread| thread.join().unwrap()).into()
    });
    assert_eq!(made[0], made[1]);
    let again = PrivateKey::load_or_generate(&dir, "minion", 2048).unwrap();
    assert_eq!(again.public(), made[0]);
    for (name, mode) in [("minion.pem", 0o400), ("minion.pub", 0o644)] {
        let actual = fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(actual, mode, "{name}");
    }
}

#[test]
fn a_missing_or_wrong_public_file_is_rewritten() {
    let dir = tempfile::tempdir().unwrap();
    let public = dir.path().join("master.pub");
    fs::write(dir.path().join("master.pem"), PEM).unwrap();
    for wrong in [None, Some("of another key")] {
        let _ = wrong.map(|text| fs::write(&public, text));
        let key = PrivateKey::load_or_generate(&dir, "master", 2048).unwrap();
        assert_eq!(fs::read_to_string(&public).unwrap(), key.public().to_pem());
    }
}

#[test]
fn a_damaged_file_is_named_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("master.pem");
    fs::write(&path, "not a key").unwrap();
    let message = PrivateKey::load_or_generate(&dir, "master", 2048).unwrap_err().to_string();
    let message = message.replace(&*dir.path().to_string_lossy(), "DIR");
    insta::assert_snapshot!(message, @"DIR/master.pem: this is not a usable RSA key: it has no BEGIN and END line of a PEM file");
    assert_eq!(fs::read_to_string(&path).unwrap(), "not a key");
    assert!(PrivateKey::load(dir.path().join("none.pem"), None).unwrap().is_none());
}
