use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use super::*;
use crate::render::Sls;
use brine_jinja::{Context, Host};
use brine_value::{list, map};

/// A keyring of its own, and a message encrypted for it.
struct Keys(tempfile::TempDir);

impl Keys {
    fn new() -> Self {
        let private = std::fs::Permissions::from_mode(0o700);
        let keys = Keys(tempfile::Builder::new().permissions(private).tempdir().unwrap());
        keys.gpg(&["--passphrase", "", "--quick-generate-key", "me@example.com", "default", "default", "never"], "");
        keys
    }

    fn gpg(&self, args: &[&str], input: &str) -> String {
        let mut child = Command::new("gpg")
            .arg("--homedir")
            .arg(self.0.path())
            .args(["--batch", "--quiet", "--trust-model", "always", "--pinentry-mode", "loopback"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("gpg is not installed: run tests/run, or apt-get install gnupg");
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    }

    fn encrypt(&self, text: &str) -> String {
        self.gpg(&["--armor", "--encrypt", "--recipient", "me@example.com"], text)
    }

    fn opts(&self) -> Map {
        map! {"gpg_keydir" => self.0.path().to_owned()}
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        _ = Command::new("gpgconf").arg("--homedir").arg(self.0.path()).args(["--kill", "all"]).status();
    }
}

#[test]
fn messages_are_decrypted_at_every_depth() {
    let keys = Keys::new();
    let (word, line) = (keys.encrypt("swordfish\n"), keys.encrypt("two").trim().replace('\n', "\\n"));
    let gpg = Gpg::of(&keys.opts());
    let mut value = map! {"a" => list![word.as_str(), 7], "b" => map! {"c" => format!("one {line} three")}}.into();
    gpg.decrypt(&mut value).unwrap();
    assert_eq!(value, map! {"a" => list!["swordfish", 7], "b" => map! {"c" => "one two three"}}.into());

    let sls = format!("#!yaml|gpg\na: |\n  {}\n", word.trim().replace('\n', "\n  "));
    let sls = Sls::compile("s", &sls, "jinja|yaml").unwrap().with_gpg(Arc::new(Gpg::of(&keys.opts())));
    let host = Host::new();
    assert_eq!(sls.render(&Context::new("base"), &host), Ok(map! {"a" => "swordfish"}.into()));

    let mut opts = keys.opts();
    opts.insert("gpg_cache".into(), true.into());
    let caching = Gpg::of(&opts);
    caching.decrypt(&mut word.as_str().into()).unwrap();
    drop(keys);
    let mut again = word.as_str().into();
    caching.decrypt(&mut again).unwrap();
    assert_eq!(again, "swordfish".into());
}

#[test]
fn a_failed_decryption_is_an_error_if_it_must_succeed() {
    let (keys, others) = (Keys::new(), Keys::new());
    let message = others.encrypt("swordfish");
    let mut value = Value::from(message.trim());
    let mut opts = keys.opts();
    opts.insert("gpg_decrypt_must_succeed".into(), false.into());
    Gpg::of(&opts).decrypt(&mut value).unwrap();
    assert_eq!(value, message.trim().into());

    let error = Gpg::of(&keys.opts()).decrypt(&mut value).unwrap_err();
    assert!(matches!(&error, GpgError::Undecryptable { message, .. } if message.contains("No secret key")), "{error}");
}

#[test]
fn a_missing_program_is_always_an_error() {
    let message = "-----BEGIN PGP MESSAGE-----\n\nx\n-----END PGP MESSAGE-----";
    let opts = map! {"gpg_decrypt_must_succeed" => false};
    let gpg = Gpg { program: Path::new("/nonexistent/gpg").into(), ..Gpg::of(&opts) };
    assert_eq!(gpg.decrypt(&mut message.into()), Err(GpgError::Missing));
    assert_eq!(gpg.decrypt(&mut "not encrypted".into()), Ok(()));
}
