//! Functions and states with the program `gpg`.

use brine_context::Context;
use brine_function::Args;
use brine_value::{Map, Value, list, map};

use crate::testing::context;

/// A keychain in a temporary directory.
struct Chain {
    directory: tempfile::TempDir,
    context: Context,
}

impl Chain {
    fn new() -> Self {
        Chain { directory: tempfile::tempdir().unwrap(), context: context(&[]) }
    }

    fn home(&self) -> String {
        self.directory.path().display().to_string()
    }

    fn call(&self, function: &str, mut keyword: Map) -> Value {
        keyword.insert("gnupghome".into(), self.home().into());
        self.context
            .call(function, Args { keyword, ..Args::default() })
            .unwrap_or_else(|error| panic!("{function}: {error}"))
    }

    fn state(&self, function: &str, test: bool, mut keyword: Map) -> (Option<bool>, String, Map) {
        keyword.insert("gnupghome".into(), self.home().into());
        let context = brine_testing::state_context(test, self.context.clone());
        let report = context.call.minion.states.call(&context, function, Args { keyword, ..Args::default() }).unwrap();
        let changes = report.get("changes").and_then(Value::as_map).cloned().unwrap();
        (report.get("result").and_then(Value::as_bool), report.get("comment").unwrap().to_string(), changes)
    }

    fn create(&self) -> (String, String) {
        let keyword = map! {
            "name_real" => "Web", "name_comment" => "", "name_email" => "web@example.org", "key_length" => 2048,
            "subkey_type" => "RSA", "subkey_length" => 2048,
        };
        let made = self.call("gpg.create_key", keyword);
        assert_eq!(made.get("res"), Some(&true.into()), "{made}");
        let fingerprint = made.get("fingerprint").unwrap().to_string();
        (fingerprint[24..].to_owned(), fingerprint)
    }
}

impl Chain {
    /// Runs `gpg` with its clock at this time.
    fn at(&self, time: &str, words: &[&str]) -> String {
        let home = self.home();
        let fixed =
            ["--homedir", &home, "--batch", "--yes", "--passphrase", "", "--pinentry-mode", "loopback", "--armor"];
        let mut command = std::process::Command::new("gpg");
        let output = command.args(fixed).args(["--faked-system-time", time]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns a file with this text.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // GnuPG starts an agent for each directory.
        _ = std::process::Command::new("gpgconf").args(["--homedir", &self.home(), "--kill", "all"]).status();
    }
}

#[test]
fn keys_are_created_moved_trusted_and_deleted() {
    let (first, second) = (Chain::new(), Chain::new());
    let (keyid, fingerprint) = first.create();
    let key = first.call("gpg.get_key", map! {"keyid" => keyid.as_str()});
    assert_eq!(key.get("uids"), Some(&list!["Web <web@example.org>"]));
    assert_eq!(key.get("fingerprint"), Some(&fingerprint.as_str().into()));
    assert_eq!(first.call("gpg.list_secret_keys", map! {}).as_list().unwrap().len(), 1);

    let text = first.call("gpg.export_key", map! {"keyids" => keyid.as_str(), "bare" => true}).to_string();
    assert!(text.starts_with("-----BEGIN PGP PUBLIC KEY BLOCK-----"), "{text}");
    let read = second.call("gpg.read_key", map! {"text" => text.as_str()});
    assert_eq!(read.as_list().unwrap().len(), 1);
    assert_eq!(second.call("gpg.list_keys", map! {}), list![], "reading imports nothing");
    let none = second.call("gpg.import_key", map! {"text" => text.as_str(), "select" => "other@example.org"});
    assert_eq!(none.get("fingerprints"), Some(&list![]), "{none}");
    for message in ["Successfully imported key(s).", "Key(s) already exist in keychain."] {
        let result = second.call("gpg.import_key", map! {"text" => text.as_str()});
        assert_eq!(result.get("message"), Some(&message.into()), "{result}");
        assert_eq!(result.get("fingerprints"), Some(&list![fingerprint.as_str()]));
    }
    let trusted = second.call("gpg.trust_key", map! {"keyid" => keyid.as_str(), "trust_level" => "fully"});
    assert_eq!(trusted.get("message"), Some(&"Setting ownership trust to Fully Trusted.".into()), "{trusted}");
    assert_eq!(
        second.call("gpg.get_key", map! {"keyid" => &keyid[8..]}).get("ownerTrust"),
        Some(&"Fully Trusted".into())
    );

    let result = first.call("gpg.delete_key", map! {"keyid" => keyid.as_str()});
    assert!(result.get("message").unwrap().to_string().starts_with("Secret key exists"), "{result}");
    let keyword = map! {"keyid" => keyid.as_str(), "delete_secret" => true, "use_passphrase" => false};
    assert_eq!(first.call("gpg.delete_key", keyword).get("res"), Some(&true.into()));
    assert_eq!(first.call("gpg.get_key", map! {"keyid" => keyid.as_str()}), false.into());
}

#[test]
fn data_is_signed_verified_encrypted_and_decrypted() {
    let (own, other) = (Chain::new(), Chain::new());
    let (keyid, fingerprint) = own.create();
    let signed = own.call("gpg.sign", map! {"text" => "hello\n"}).to_string();
    let verified = own.call("gpg.verify", map! {"text" => signed.as_str()});
    for (field, value) in
        [("res", Value::from(true)), ("username", "Web <web@example.org>".into()), ("trust_level", "Ultimate".into())]
    {
        assert_eq!(verified.get(field), Some(&value), "{verified}");
    }
    let by = own.call("gpg.verify", map! {"text" => signed.as_str(), "signed_by_all" => list![fingerprint.as_str()]});
    assert_eq!(by.get("res"), Some(&true.into()), "{by}");
    let by = own.call("gpg.verify", map! {"text" => signed.as_str(), "signed_by_any" => "0000"});
    assert_eq!(by.get("res"), Some(&false.into()), "{by}");
    for (chain, text) in [(&own, signed.replace("hello", "hallo")), (&other, signed)] {
        let refused = chain.call("gpg.verify", map! {"text" => text});
        assert_eq!(refused.get("res"), Some(&false.into()), "{refused}");
    }

    let output = own.directory.path().join("out").display().to_string();
    let keyword = map! {"text" => "secret", "recipients" => "web@example.org", "bare" => true};
    let sealed = own.call("gpg.encrypt", keyword).to_string();
    assert!(sealed.starts_with("-----BEGIN PGP MESSAGE-----"), "{sealed}");
    assert_eq!(own.call("gpg.decrypt", map! {"text" => sealed.as_str()}).get("comment"), Some(&"secret".into()));
    own.call("gpg.decrypt", map! {"text" => sealed.as_str(), "output" => output.as_str()});
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "secret");
    assert_eq!(other.call("gpg.decrypt", map! {"text" => sealed, "bare" => true}), false.into());
    for (function, keyword) in [
        ("gpg.encrypt", map! {"text" => "a"}),
        ("gpg.encrypt", map! {"text" => "a", "recipients" => "--yes"}),
        ("gpg.create_key", map! {"name_real" => "a\n%pubring x"}),
        ("gpg.sign", map! {}),
        ("gpg.trust_key", map! {"keyid" => keyid, "trust_level" => "much"}),
        ("gpg.list_keys", map! {"user" => "nobody-of-this-name"}),
    ] {
        assert!(own.context.call(function, Args { keyword, ..Args::default() }).is_err(), "{function}");
    }
}

#[test]
fn states_add_trust_and_remove_keys() {
    let (from, chain) = (Chain::new(), Chain::new());
    let (keyid, _) = from.create();
    let text = from.call("gpg.export_key", map! {"keyids" => keyid.as_str(), "bare" => true}).to_string();
    let arguments = map! {"name" => keyid.as_str(), "text" => text.as_str(), "trust" => "ultimately"};
    let added = map! {keyid.as_str() => map! {"added" => true, "trust" => "ultimately"}};
    let (result, comment, changes) = chain.state("gpg.present", true, arguments.clone());
    assert_eq!((result, &changes), (None, &added), "{comment}");
    let (result, comment, changes) = chain.state("gpg.present", false, arguments.clone());
    assert_eq!((result, &changes), (Some(true), &added), "{comment}");
    assert!(comment.contains(&format!("Added {keyid} to GPG keychain")), "{comment}");
    let (result, comment, changes) = chain.state("gpg.present", false, arguments);
    assert_eq!((result, changes.is_empty()), (Some(true), true), "{comment}");
    for (keyword, part) in [
        (
            map! {"name" => "0123456789ABCDEF", "text" => text},
            "Passed text did not contain the requested key 0123456789ABCDEF",
        ),
        (map! {"name" => "a", "skip_keyserver" => true}, "at least one source"),
        (map! {"name" => "a", "trust" => "much"}, "Invalid trust level much"),
    ] {
        let (result, comment, _) = chain.state("gpg.present", false, keyword);
        assert!(result == Some(false) && comment.contains(part), "{comment}");
    }
    for (test, result, part) in
        [(true, None, "Would have deleted"), (false, Some(true), "Deleted"), (false, Some(true), "not found")]
    {
        let (got, comment, _) = chain.state("gpg.absent", test, map! {"name" => keyid.as_str()});
        assert!(got == result && comment.contains(part), "{comment}");
    }
}

/// The results are Salt's.
#[test]
fn expired_keys_and_subkeys_are_updated() {
    let from = Chain::new();
    let ago = |days: i64| {
        let then = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days);
        then.strftime("%Y%m%dT%H%M%S").to_string()
    };
    let (now, then) = (ago(0), ago(10));
    from.at(&then, &["--quick-gen-key", "web", "rsa1024", "sign", "1d"]);
    let keys = from.call("gpg.list_keys", map! {});
    let key = keys.as_list().unwrap().first().unwrap();
    let field = |name: &str| key.get(name).unwrap().to_string();
    let (id, fingerprint) = (field("keyid"), field("fingerprint"));
    let export = || from.at(&now, &["--export", &id]);
    let expired = from.file("expired", &export());
    from.at(&then, &["--quick-add-key", &fingerprint, "rsa1024", "encr", "1d"]);
    from.at(&now, &["--quick-set-expire", &fingerprint, "0"]);
    let old_subkey = from.file("old-subkey", &export());
    let key = from.call("gpg.get_key", map! {"keyid" => id.as_str()});
    let subkey = key.get("subkeys").and_then(Value::as_list).and_then(<[Value]>::first).unwrap();
    let [subkey, subkey_fingerprint] = ["keyid", "fingerprint"].map(|name| subkey.get(name).unwrap().to_string());
    from.at(&now, &["--quick-set-expire", &fingerprint, "0", &subkey_fingerprint]);
    let good = from.file("good", &export());
    let (missing, other) = (from.file("none", "") + "x", from.file("other", "no key"));

    let added = map! {id.as_str() => map! {"added" => true}};
    let refreshed = map! {id.as_str() => map! {"refresh" => true}};
    let extended = map! {
        id.as_str() => map! {"refresh" => true, "subkeys" => map! {"extended" => list![subkey.as_str()]}}
    };
    let none = format!("none of the specified sources were found or contained the (unexpired) key {id}.");
    let unchanged =
        format!("Attempted to update {id} because it has expired subkeys, but no new signatures or keys were found");
    for (have, sources, maxage, result, changes, comment) in [
        (None, list![good.as_str()], 100, true, &added, format!("Added {id} to GPG keychain")),
        (
            Some(&expired),
            list![missing.as_str(), other.as_str(), expired.as_str(), good.as_str()],
            100,
            true,
            &refreshed,
            format!("Updated {id} because it was expired"),
        ),
        (
            Some(&expired),
            list![expired.as_str()],
            100,
            false,
            &map! {},
            format!("Existing key is expired, tried to fetch updated one\n  * {none}"),
        ),
        (None, list![expired.as_str()], 100, false, &added, format!("The new key {id} is expired though.")),
        (
            Some(&old_subkey),
            list![good.as_str()],
            100,
            true,
            &extended,
            format!("Updated {id} because it had expired subkeys."),
        ),
        (Some(&old_subkey), list![old_subkey.as_str()], 100, true, &map! {}, unchanged),
        (
            Some(&old_subkey),
            list![good.as_str()],
            5,
            true,
            &map! {},
            format!("GPG Public Key {id} already in keychain"),
        ),
        (
            Some(&old_subkey),
            list![good.as_str()],
            0,
            true,
            &map! {},
            format!("GPG Public Key {id} already in keychain"),
        ),
    ] {
        let chain = Chain::new();
        if let Some(have) = have {
            chain.call("gpg.import_key", map! {"filename" => have.as_str()});
        }
        let keyword = map! {
            "name" => id.as_str(), "skip_keyserver" => true, "source" => sources.clone(), "subkey_maxage" => maxage,
        };
        let (got, text, made) = chain.state("gpg.present", false, keyword);
        assert_eq!((got, &made), (Some(result), changes), "{have:?} {sources}: {text}");
        assert!(text.contains(&comment), "{have:?} {sources}: {text}");
    }
}

#[test]
fn an_empty_keyring_is_removed() {
    let chain = Chain::new();
    for (absent_if_empty, is_left) in [(false, true), (true, false)] {
        let ring = chain.file("ring", "");
        let keyword = map! {
            "name" => "0123456789ABCDEF", "keyring" => ring.as_str(), "keyring_absent_if_empty" => absent_if_empty,
        };
        let (result, comment, changes) = chain.state("gpg.absent", false, keyword);
        assert_eq!(result, Some(true), "{comment}");
        assert_eq!(std::path::Path::new(&ring).exists(), is_left, "{comment}");
        assert_eq!(changes.contains_key("removed"), !is_left, "{comment}");
    }
}

#[test]
fn outputs_replace_planted_links() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("victim"), "kept").unwrap();
    for (name, target) in [("existing", "victim"), ("missing", "new")] {
        std::os::unix::fs::symlink(at(target), at(name)).unwrap();
        super::data::write_output(at(name).to_str().unwrap(), "text").unwrap();
        assert_eq!(std::fs::read_to_string(at(name)).unwrap(), "text", "{name}");
        assert!(!at(name).is_symlink() && !at("new").exists(), "{name}");
    }
    assert_eq!(std::fs::read_to_string(at("victim")).unwrap(), "kept");
}
