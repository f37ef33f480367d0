use brine_bus::store::Store;
use brine_runtime::executors::MayBlock;
use brine_value::Value;

use super::*;

fn tokens(directory: &Path) -> TokenStore {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (store, _) = Store::open(&directory.join("brine.redb"), 1 << 20).unwrap();
    TokenStore::new(store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone())), None)
}

fn fred() -> Identity {
    let entries = Some(vec!["test.*".into()]);
    Identity { eauth: "file".into(), username: UserName::found("fred"), groups: vec!["ops".into()], entries }
}

#[test]
fn tokens_are_valid_until_they_expire_or_are_revoked() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = tokens(directory.path());
    let now = Timestamp::from_second(1_000).unwrap();
    let hour = Duration::from_secs(3600);
    let made = tokens.create(fred(), hour, now).unwrap();
    assert!(made.secret.len() == 64 && made.secret.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let expires = Timestamp::from_second(4_600).unwrap();
    assert_eq!((made.token.start, made.token.expire), (now, expires));
    for (secret, at, valid) in [
        (made.secret.as_str(), now, true),
        (&made.secret, Timestamp::from_second(4_599).unwrap(), true),
        (&made.secret, expires, false),
        ("", now, false),
        (&made.secret[1..], now, false),
    ] {
        assert_eq!(tokens.get(secret, at).unwrap().is_some(), valid, "{secret} {at}");
    }
    assert_eq!(tokens.get(&made.secret, now).unwrap().unwrap().identity, fred());
    let other = tokens.create(fred(), hour, now).unwrap();
    assert!(tokens.revoke(&made.secret).unwrap() && !tokens.revoke(&made.secret).unwrap());
    assert_eq!(tokens.get(&made.secret, now).unwrap(), None);
    let listed = tokens.list(now).unwrap();
    assert_eq!(listed.len(), 1);
    // The digest in a list is not a token.
    assert_eq!(tokens.get(&listed[0].0, now).unwrap(), None);
    assert!(tokens.revoke_digest(&listed[0].0).unwrap());
    assert_eq!(tokens.get(&other.secret, now).unwrap(), None);
}

#[test]
fn a_user_with_many_tokens_does_not_evict_those_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = tokens(directory.path());
    let at = |second: usize| Timestamp::from_second(1_000 + second as i64).unwrap();
    let day = Duration::from_secs(86_400);
    let ann = Identity { username: UserName::found("ann"), ..fred() };
    let hers = tokens.create(ann, day, at(0)).unwrap();
    let mut batch = Batch::new();
    for number in 1..MAX_TOKENS {
        let token = Token { identity: fred(), start: at(number), expire: at(90_000), has_files: false };
        batch.put(TOKENS, format!("{number:064}"), msgpack::pack_map(&token.to_map()));
    }
    tokens.store.write_blocking(batch).durable_blocking().unwrap();
    let newest = tokens.create(fred(), day, at(MAX_TOKENS)).unwrap();
    for token in [&hers, &newest] {
        assert!(tokens.get(&token.secret, at(MAX_TOKENS)).unwrap().is_some(), "{token:?}");
    }
    assert_eq!(tokens.list(at(MAX_TOKENS)).unwrap().len(), MAX_TOKENS / 2 + 1);
}

#[test]
fn tokens_of_a_user_are_revoked_together() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = tokens(directory.path());
    let now = Timestamp::from_second(1_000).unwrap();
    for (user, eauth) in [("fred", "file"), ("fred", "file"), ("fred", "ldap"), ("ann", "file")] {
        let identity = Identity { eauth: eauth.into(), username: UserName::found(user), ..fred() };
        tokens.create(identity, Duration::from_secs(10), now).unwrap();
    }
    for (user, eauth, revoked) in
        [("fred", Some("file"), 2), ("fred", None, 1), ("fred", None, 0), ("bob", None, 0), ("ann", Some("pam"), 0)]
    {
        assert_eq!(tokens.revoke_user(user, eauth).unwrap(), revoked, "{user} {eauth:?}");
    }
    assert_eq!(tokens.list(now).unwrap().len(), 1);
}

#[test]
fn a_token_and_its_files_are_removed_together() {
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("tokens");
    let tokens = tokens(directory.path()).with_files(Some(&files));
    let now = Timestamp::from_second(1_000).unwrap();
    let create = || tokens.create(fred(), Duration::from_secs(100), now).unwrap().secret;
    let names = || {
        let mut names: Vec<String> =
            std::fs::read_dir(&files).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    for ending in ["", ".p"] {
        let (ended, live) = (create(), create());
        let data = msgpack::unpack_map(&std::fs::read(files.join(format!("{ended}{ending}"))).unwrap()).unwrap();
        assert_eq!((data.get("token"), data.get("name")), (Some(&Value::from(&ended)), Some(&"fred".into())));
        assert!(tokens.get(&ended, now).unwrap().is_some());
        std::fs::remove_file(files.join(format!("{ended}{ending}"))).unwrap();
        assert_eq!(tokens.list(now).unwrap().len(), 1);
        assert_eq!(tokens.get(&ended, now).unwrap(), None);
        assert_eq!(names(), [live.clone(), format!("{live}.p")]);
        assert!(tokens.get(&live, now).unwrap().is_some());
        assert!(tokens.revoke(&live).unwrap() && names().is_empty());
    }
    let (live, other) = (create(), files.join("other"));
    std::fs::write(&other, "").unwrap();
    assert_eq!(tokens.remove_expired(now).unwrap(), 0);
    assert_eq!(names().len(), 3);
    let lost = create();
    std::fs::remove_file(files.join(&lost)).unwrap();
    assert_eq!(tokens.remove_expired(now).unwrap(), 0, "it may be new");
    assert_eq!(tokens.remove_expired(Timestamp::from_second(1_090).unwrap()).unwrap(), 1);
    assert_eq!(names().len(), 3);
    assert_eq!(tokens.remove_expired(Timestamp::from_second(1_100).unwrap()).unwrap(), 1);
    assert_eq!(names(), ["other"]);
    // Files have no effect on tokens that were created without the option, or once it is off.
    let without = TokenStore { files: None, ..tokens.clone() };
    let secret = without.create(fred(), Duration::from_secs(100), now).unwrap().secret;
    assert!(tokens.get(&secret, now).unwrap().is_some() && without.get(&live, now).unwrap().is_none());
}

#[test]
fn expired_and_damaged_tokens_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = tokens(directory.path());
    let now = Timestamp::from_second(1_000).unwrap();
    tokens.create(fred(), Duration::from_secs(10), now).unwrap();
    let live = tokens.create(fred(), Duration::from_secs(100), now).unwrap();
    let mut batch = Batch::new();
    batch.put(TOKENS, "damaged", &b"\xc1"[..]);
    tokens.store.write_blocking(batch).durable_blocking().unwrap();
    assert_eq!(tokens.remove_expired(Timestamp::from_second(1_010).unwrap()).unwrap(), 2);
    assert!(tokens.get(&live.secret, now).unwrap().is_some());
}
