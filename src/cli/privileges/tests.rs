use std::os::unix::fs::symlink;

use super::*;

fn nobody() -> Option<User> {
    User::from_name("nobody").unwrap().filter(|_| geteuid().is_root())
}

#[test]
fn unknown_users_are_refused() {
    let own = User::from_uid(geteuid()).unwrap().unwrap();
    for name in [None, Some(""), Some(own.name.as_str())] {
        assert!(target_user(name).unwrap().is_none(), "{name:?}");
        take_user(name, &OwnedPaths::default(), true).unwrap();
    }
    let error = target_user(Some("no-such-user")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "running as user 'no-such-user' failed: the user does not exist; create it, or change the option 'user'"
    );
}

#[test]
fn owners_are_changed_without_following_links() {
    // Requires root.
    let Some(nobody) = nobody() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (own, other) = (directory.path().join("own"), directory.path().join("other"));
    fs::create_dir_all(own.join("deep/er")).unwrap();
    fs::create_dir(&other).unwrap();
    for path in [own.join("a"), own.join("deep/er/b"), other.join("c"), other.join("d")] {
        fs::write(path, "x").unwrap();
    }
    symlink(&other, own.join("link")).unwrap();
    symlink(other.join("c"), own.join("deep/file")).unwrap();
    fs::hard_link(other.join("d"), own.join("hard")).unwrap();
    let uid = |path: PathBuf| fs::symlink_metadata(path).unwrap().uid();
    change_owner(&own, &nobody, false).unwrap();
    assert_eq!((uid(own.clone()), uid(own.join("a"))), (nobody.uid.as_raw(), 0));
    change_owner(&own, &nobody, true).unwrap();
    for name in ["a", "deep", "deep/er", "deep/er/b", "link", "deep/file"] {
        assert_eq!(uid(own.join(name)), nobody.uid.as_raw(), "{name}");
    }
    for path in [other.clone(), other.join("c"), other.join("d"), directory.path().to_owned()] {
        assert_eq!(uid(path.clone()), 0, "{}", path.display());
    }
}

#[test]
fn log_file_keeps_its_owner_if_it_may_be_another_file() {
    // Requires root.
    let Some(nobody) = nobody() else { return };
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("secret"), "x").unwrap();
    fs::hard_link(at("secret"), at("hard.log")).unwrap();
    symlink(at("secret"), at("link.log")).unwrap();
    fs::write(at("own.log"), "x").unwrap();
    for (name, expected) in [("hard.log", 0), ("link.log", 0), ("own.log", nobody.uid.as_raw())] {
        change_owner_of_file(&at(name), &nobody).unwrap();
        assert_eq!(fs::symlink_metadata(at(name)).unwrap().uid(), expected, "{name}");
    }
    assert_eq!(fs::metadata(at("secret")).unwrap().uid(), 0);
}
