//! Runs `gpg` on one keyring, and parses its machine-readable output.

use std::path::PathBuf;

use brine_context::Context;
use brine_function::{Args, CallError};
use brine_host::accounts::Accounts;
use brine_host::process::{Output, Program};
use brine_host::programs::program;
use brine_value::{Map, Value, map};
use jiff::Timestamp;

/// The user name that selects the keychain `gpgkeys` in the configuration directory, as used for encrypted pillar data.
const SALT_USER: &str = "salt";

/// The user of a keychain, and its directory.
#[derive(Args, Debug, Clone)]
pub struct HomeArgs {
    /// User whose keychain is used, by default that of the minion; `salt` is `gpgkeys` in the configuration directory.
    pub user: Option<String>,
    /// Directory of the keychain, by default `.gnupg` in the home directory of the user.
    pub gnupghome: Option<String>,
}

/// A keyring in a directory of GnuPG.
pub(super) struct Keyring<'a> {
    context: &'a Context,
    home: PathBuf,
    keyring: Option<String>,
    /// The user that runs `gpg`, if it is not the minion's.
    user: Option<String>,
}

/// The result of a run: its output, and its status lines (`[GNUPG:]`), each as keyword and arguments.
pub(super) struct Outcome {
    pub output: Output,
    pub status: Vec<(String, String)>,
}

impl Outcome {
    /// Returns the arguments of the first status line with this keyword.
    pub fn status(&self, name: &str) -> Option<&str> {
        self.status.iter().find(|(keyword, _)| keyword == name).map(|(_, rest)| rest.as_str())
    }

    /// Returns the error output without status lines.
    pub fn errors(&self) -> String {
        let lines = self.output.stderr.lines().filter(|line| !line.starts_with("[GNUPG:]"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl<'a> Keyring<'a> {
    /// Opens the keyring that the arguments select. Its directory is created if it does not exist.
    ///
    /// # Errors
    /// The user does not exist, or the directory cannot be created.
    pub fn open(context: &'a Context, home: &HomeArgs, keyring: Option<String>) -> Result<Self, CallError> {
        let user = home.user.clone().filter(|user| !user.is_empty() && user != SALT_USER);
        let account = |name: &str| Accounts::read().user(name).cloned();
        let directory = match (&home.gnupghome, &home.user, &user) {
            (Some(directory), ..) if !directory.is_empty() => PathBuf::from(directory),
            (_, Some(name), None) if name == SALT_USER => context.config().config_dir.join("gpgkeys"),
            (_, _, Some(name)) => match account(name) {
                Some(account) => PathBuf::from(account.home).join(".gnupg"),
                None => return Err(CallError::Execution(format!("User {name} does not exist"))),
            },
            _ => std::env::var_os("GNUPGHOME")
                .map_or_else(|| std::env::home_dir().unwrap_or_else(|| "/root".into()).join(".gnupg"), PathBuf::from),
        };
        if !directory.exists() {
            let keyword = map! {"dir_path" => directory.clone(), "user" => user.clone(), "mode" => "0700"};
            context.call("file.mkdir", Args { keyword, ..Args::default() })?;
        }
        Ok(Keyring { context, home: directory, keyring, user })
    }

    /// Runs `gpg` in batch mode with these arguments and this input.
    pub fn run(&self, words: &[&str], passphrase: Option<&str>, input: Option<&str>) -> Result<Outcome, CallError> {
        let home = self.home.display().to_string();
        let mut all = vec!["gpg", "--homedir", &home, "--batch", "--no-tty", "--status-fd", "2"];
        if let Some(keyring) = &self.keyring {
            all.extend(["--no-default-keyring", "--keyring", keyring]);
        }
        // The passphrase is passed as the first line of the input: arguments are visible to other users.
        let mut stdin = String::new();
        if let Some(passphrase) = passphrase {
            all.extend(["--pinentry-mode", "loopback", "--passphrase-fd", "0"]);
            stdin = format!("{passphrase}\n");
        }
        all.extend(words);
        stdin.push_str(input.unwrap_or_default());
        let words: Vec<String> = all.into_iter().map(str::to_owned).collect();
        let program = Program {
            stdin: Some(stdin),
            runas: self.user.clone(),
            keep_line_ends: true,
            ..program(&words, &[("LANG", "C"), ("LC_ALL", "C")])
        };
        let output = self.context.run_program(&program).map_err(CallError::execution)?;
        let status = output.stderr.lines().filter_map(|line| line.strip_prefix("[GNUPG:] ")).map(|line| {
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            (name.to_owned(), rest.to_owned())
        });
        Ok(Outcome { status: status.collect(), output })
    }

    /// Returns the public or the secret keys.
    pub fn keys(&self, secret: bool) -> Result<Vec<Map>, CallError> {
        let list = if secret { "--list-secret-keys" } else { "--list-keys" };
        let words = ["--with-colons", "--fixed-list-mode", "--fingerprint", "--fingerprint", list];
        let outcome = self.run(&words, None, None)?;
        Ok(parse(&outcome.output.stdout, Timestamp::now().as_second()))
    }

    /// Returns the key with this fingerprint, or with this id: 16 hexadecimal digits, or the last 8 of them.
    pub fn key(&self, keyid: Option<&str>, fingerprint: Option<&str>, secret: bool) -> Result<Option<Map>, CallError> {
        let text = |key: &Map, name: &str| key.get(name).map(ToString::to_string).unwrap_or_default();
        Ok(self.keys(secret)?.into_iter().find(|key| {
            let own = text(key, "keyid");
            let is_id = keyid.is_some_and(|id| own == id || own.get(8..) == Some(id));
            is_id || fingerprint.is_some_and(|expected| text(key, "fingerprint") == expected)
        }))
    }
}

/// Returns Salt's name of a trust level, by its letter in gpg's colon-separated lists.
fn trust(letter: &str) -> &'static str {
    match letter {
        "e" => "Expired",
        "n" => "Not Trusted",
        "f" => "Fully Trusted",
        "m" => "Marginally Trusted",
        "u" => "Ultimately Trusted",
        "r" => "Revoked",
        _ => "Unknown",
    }
}

/// Parses the output of `--with-colons`. `now` is the time in Unix seconds.
fn parse(text: &str, now: i64) -> Vec<Map> {
    let mut keys: Vec<Map> = Vec::new();
    // Whether the next fingerprint belongs to a subkey.
    let mut is_subkey = false;
    for line in text.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        match field(0) {
            "pub" | "sec" => {
                is_subkey = false;
                keys.push(key_details(&fields, now));
            }
            "sub" | "ssb" => {
                is_subkey = true;
                if let Some(key) = keys.last_mut() {
                    let subkeys = key.entry("subkeys".into()).or_insert_with(|| Vec::<Value>::new().into());
                    if let Value::List(subkeys) = subkeys {
                        subkeys.push(key_details(&fields, now).into());
                    }
                }
            }
            "fpr" => {
                if let Some(key) = keys.last_mut() {
                    let of = match key.get_mut("subkeys") {
                        Some(Value::List(subkeys)) if is_subkey => subkeys.last_mut().and_then(Value::as_map_mut),
                        _ => Some(key),
                    };
                    if let Some(of) = of {
                        of.entry("fingerprint".into()).or_insert_with(|| field(9).into());
                    }
                }
            }
            "uid" => {
                if let Some(key) = keys.last_mut() {
                    let uids = key.entry("uids".into()).or_insert_with(|| Vec::<Value>::new().into());
                    if let Value::List(uids) = uids {
                        uids.push(unescaped(field(9)).into());
                    }
                }
            }
            _ => {}
        }
    }
    keys
}

/// Parses the output of `--search-keys`: `pub:KEYID:ALGORITHM:LENGTH:CREATED:EXPIRES:FLAGS`, and `uid:NAME:...` with the
/// name percent-encoded. `now` is the time in Unix seconds.
pub(super) fn parse_search_results(text: &str, now: i64) -> Vec<Map> {
    let mut keys: Vec<Map> = Vec::new();
    for line in text.lines() {
        match line.split(':').collect::<Vec<_>>()[..] {
            ["pub", id, _, length, created, expires, ..] => {
                let mut key = key_details(&["pub", "", length, "", id, created, expires], now);
                key.insert("uids".into(), Vec::<Value>::new().into());
                keys.push(key);
            }
            ["uid", name, ..] => {
                if let Some(Value::List(uids)) = keys.last_mut().and_then(|key| key.get_mut("uids")) {
                    uids.push(unescaped(&name.replace('%', "\\x")).into());
                }
            }
            _ => {}
        }
    }
    keys
}

fn key_details(fields: &[&str], now: i64) -> Map {
    let field = |at: usize| fields.get(at).copied().unwrap_or_default();
    let day = |seconds: i64| {
        let time = Timestamp::from_second(seconds).unwrap_or_default();
        time.to_zoned(brine_clock::zone()).strftime("%Y-%m-%d").to_string()
    };
    let mut key = map! {"keyid" => field(4)};
    if let Ok(expires) = field(6).parse::<i64>() {
        key.insert("expires".into(), day(expires).into());
        key.insert("expired".into(), (now >= expires).into());
    }
    if let Ok(created) = field(5).parse::<i64>() {
        key.insert("created".into(), day(created).into());
    }
    key.insert("keyLength".into(), field(2).into());
    if !field(8).is_empty() {
        key.insert("ownerTrust".into(), trust(field(8)).into());
    }
    if !field(1).is_empty() {
        key.insert("trust".into(), trust(field(1)).into());
    }
    key
}

/// Decodes escapes such as `\x3a`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\x") {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let code = rest.get(at + 2..at + 4).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = code {
            bytes.push(byte);
            rest = &rest[at + 4..];
        } else {
            bytes.extend_from_slice(b"\\x");
            rest = &rest[at + 2..];
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn keys_are_parsed() {
        let text = "tru:o:1:1795529012:1:3:1:5\npub:u:2048:1:90B351A93EA6BFE6:1795529011:1795629011::u:::escaESCA::::::23::0:\n\
                    fpr:::::::::B532CCE1538057AFFA141CA790B351A93EA6BFE6:\nuid:u::::1795529011::54::A\\x3a B <a@x>::::::::::0:\n\
                    sub:e:3072:1:E0DCD5A4CDA5C24C:1795529011::::::esa::::::23:\nfpr:::::::::E6E2B60EFC744E932EAE4E0EE0DCD5A4CDA5C24C:\n";
        let mut keys = parse(text, 1_795_700_000);
        let subkey = map! {
            "keyid" => "E0DCD5A4CDA5C24C", "created" => "2026-11-24", "keyLength" => "3072", "trust" => "Expired",
            "fingerprint" => "E6E2B60EFC744E932EAE4E0EE0DCD5A4CDA5C24C",
        };
        let key = keys.remove(0);
        for (name, value) in [
            ("keyid", Value::from("90B351A93EA6BFE6")),
            ("expired", true.into()),
            ("ownerTrust", "Ultimately Trusted".into()),
            ("fingerprint", "B532CCE1538057AFFA141CA790B351A93EA6BFE6".into()),
            ("uids", list!["A: B <a@x>"]),
            ("subkeys", list![subkey]),
        ] {
            assert_eq!(key.get(name), Some(&value), "{name}");
        }
        let text = "info:1:1\npub:90B351A93EA6BFE6:1:2048:1795529011::\nuid:A%3A B <a@x>:1795529011::\nuid:\\xff\n";
        let key = map! {
            "keyid" => "90B351A93EA6BFE6", "created" => "2026-11-24", "keyLength" => "2048",
            "uids" => list!["A: B <a@x>", "\u{fffd}"],
        };
        assert_eq!(parse_search_results(text, 0), [key]);
        assert!(parse_search_results("uid:x\npub:\n", 0).is_empty());
        assert!(parse("fpr:::\nuid::\nsub:\n", 0).is_empty());
        assert_eq!((unescaped("\\xe4\\x"), unescaped("a\\xzzb")), ("\u{fffd}\\x".to_owned(), "a\\xzzb".to_owned()));
    }
}
