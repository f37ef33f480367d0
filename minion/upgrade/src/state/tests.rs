use std::os::unix::fs::PermissionsExt;

use super::*;

fn state() -> State {
    State {
        phase: Phase::Staged,
        jid: "1".into(),
        program: "/usr/local/bin/brine".into(),
        from: Release::default(),
        to: Release::default(),
        trial: None,
        reason: String::new(),
        is_settled: false,
        is_reported: false,
    }
}

fn put(store: &Store, new: Option<State>) {
    let changed = store.update(|current| {
        *current = new;
        Ok(())
    });
    changed.unwrap();
}

#[test]
fn a_change_is_stored_for_the_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::below(directory.path());
    assert_eq!(store.load().unwrap(), None);
    put(&store, Some(state()));
    assert_eq!(store.load().unwrap(), Some(state()));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(store.directory()), mode(&store.path())), (0o700, 0o600));
    put(&store, None);
    assert_eq!(store.load().unwrap(), None);
}

#[test]
fn a_failed_change_is_not_stored() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::below(directory.path());
    let failed = store.update(|current| {
        *current = Some(state());
        Err::<(), _>(UpgradeError::UnderWay("1".into()))
    });
    assert!(failed.is_err());
    assert_eq!(store.load().unwrap(), None);
}

#[test]
fn files_that_others_can_write_and_links_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::below(directory.path());
    put(&store, Some(state()));
    let path = store.path();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    assert!(matches!(store.load(), Err(UpgradeError::Untrusted(_))));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let other = directory.path().join("other");
    std::fs::rename(&path, &other).unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    assert!(matches!(store.load(), Err(UpgradeError::Untrusted(_))));
}
