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
        let done = second.call("gpg.import_key", map! {"text" => text.as_str()});
        assert_eq!(done.get("message"), Some(&message.into()), "{done}");
        assert_eq!(done.get("fingerprints"), Some(&list![fingerprint.as_str()]));
    }
    let trusted = second.call("gpg.trust_key", map! {"keyid" => keyid.as_str(), "trust_level" => "fully"});
    assert_eq!(trusted.get("message"), Some(&"Setting ownership trust to Fully Trusted.".into()), "{trusted}");
    assert_eq!(
        second.call("gpg.get_key", map! {"keyid" => &keyid[8..]}).get("ownerTrust"),
        Some(&"Fully Trusted".into())
    );

    let kept = first.call("gpg.delete_key", map! {"keyid" => keyid.as_str()});
    assert!(kept.get("message").unwrap().to_string().starts_with("Secret key exists"), "{kept}");
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
    let wanted = map! {"name" => keyid.as_str(), "text" => text.as_str(), "trust" => "ultimately"};
    let added = map! {keyid.as_str() => map! {"added" => true, "trust" => "ultimately"}};
    let (result, comment, changes) = chain.state("gpg.present", true, wanted.clone());
    assert_eq!((result, &changes), (None, &added), "{comment}");
    let (result, comment, changes) = chain.state("gpg.present", false, wanted.clone());
    assert_eq!((result, &changes), (Some(true), &added), "{comment}");
    assert!(comment.contains(&format!("Added {keyid} to GPG keychain")), "{comment}");
    let (result, comment, changes) = chain.state("gpg.present", false, wanted);
    assert_eq!((result, changes.is_empty()), (Some(true), true), "{comment}");
    for (keyword, part) in [
        (map! {"name" => "0123456789ABCDEF", "text" => text}, "could not be retrieved"),
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
