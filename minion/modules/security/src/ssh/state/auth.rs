//! `ssh_auth`: states of authorized keys.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, Others, ParamList, function, registry};
use brine_value::{Map, map};
use indexmap::IndexMap;

use crate::ssh::authorized::{File, FileArgs, Key, Outcome};
use crate::ssh::{keys_of, remove_key, remove_keys, set_key, set_keys, would_set_key};

/// State functions of `ssh_auth`.
pub static FUNCTIONS: Functions<StateContext> = registry!("ssh_auth", [present, absent, manage]);

/// The arguments that states of keys share.
#[derive(Args)]
pub struct KeyArgs {
    /// Type of the key, if the key does not name its own.
    #[default("ssh-rsa".into())]
    enc: String,
    /// Comment of the key.
    #[default]
    comment: String,
    /// URL of a file of keys.
    #[default]
    source: String,
    #[args]
    file: FileArgs,
}

/// The arguments of `ssh_auth.present`.
#[derive(Args)]
pub struct PresentArgs {
    /// Public key, or a whole line of a file of keys.
    name: String,
    /// User who logs in with the key.
    user: String,
    #[args]
    key: KeyArgs,
}

/// Ensure that a user has an authorized key, or with `source` all keys of a file. The name may be a whole line:
/// options, the type of the key, the key, and a comment.
///
/// The file of keys and its directory are created with the permissions that sshd requires.
///
/// SLS Example:
///
///     alice_key:
///       ssh_auth.present:
///         - name: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q alice@example.com
///         - user: alice
///         - options:
///           - no-port-forwarding
///
///     keys_of_bob:
///       ssh_auth.present:
///         - user: bob
///         - source: salt://ssh/bob.pub
#[function]
pub fn present(context: &StateContext, #[args] args: PresentArgs) -> CallResult {
    let whose = KeyFile { user: args.user, config: args.key.file.config, hash: args.key.file.fingerprint_hash_type };
    let result = if args.key.source.is_empty() {
        whose.ensure(context, &args.name, key(&args.name, args.key.enc, args.key.comment, args.key.file.options))
    } else {
        whose.ensure_all(context, &args.name, &args.key.source, &args.key.file.options)
    };
    result.map(Into::into)
}

/// Ensure that a user does not have an authorized key, or with `source` any of the keys of a file. `enc`, `comment` and
/// `options` are without effect: the key decides.
///
/// SLS Example:
///
///     old_key_of_alice:
///       ssh_auth.absent:
///         - name: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q
///         - user: alice
#[function]
pub fn absent(
    context: &StateContext,
    /// Public key, or a whole line of a file of keys.
    name: String,
    /// User who logs in with the key.
    user: String,
    /// URL of a file of keys, all of which are removed.
    #[default]
    source: String,
    /// Path of the file of keys, relative to the user's home directory.
    #[default(".ssh/authorized_keys".into())]
    config: String,
    /// Hash of fingerprints: `sha256` by default, `md5`.
    fingerprint_hash_type: Option<String>,
    #[keywords(further_absent)] _kwargs: Map,
) -> CallResult {
    let whose = KeyFile { user, config, hash: fingerprint_hash_type };
    let result = if source.is_empty() {
        whose.ensure_not(context, &name, &key(&name, String::new(), String::new(), Vec::new()).key)
    } else {
        whose.ensure_none(context, &name, &source)
    };
    result.map(Into::into)
}

/// The arguments of `ssh_auth.manage`.
#[derive(Args)]
pub struct ManageArgs {
    /// Name of the state.
    name: String,
    /// Exact list of keys.
    ssh_keys: Vec<String>,
    /// User who logs in with the key.
    user: String,
    #[args]
    key: KeyArgs,
}

/// Ensure that a user has exactly these authorized keys.
///
/// SLS Example:
///
///     keys_of_alice:
///       ssh_auth.manage:
///         - user: alice
///         - enc: ssh-ed25519
///         - ssh_keys:
///           - AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q alice@laptop
#[function]
pub fn manage(context: &StateContext, #[args] args: ManageArgs) -> CallResult {
    _ = (args.name, args.key.source);
    let whose = KeyFile { user: args.user, config: args.key.file.config, hash: args.key.file.fingerprint_hash_type };
    let mut outcome = StateReturn::ok("", "");
    for have in whose.keys()?.keys() {
        if args.ssh_keys.iter().any(|line| line.split(' ').any(|word| word == have)) {
            continue;
        }
        if context.test {
            outcome.comment = format!("{have} Key set for removal");
            outcome.result = None;
        } else {
            let removed = remove_key(&whose.user, &whose.config, have)?;
            outcome.changes.insert(have.as_str().into(), removed.as_str().into());
        }
    }
    for line in &args.ssh_keys {
        let one = whose.ensure(
            context,
            line,
            key(line, args.key.enc.clone(), args.key.comment.clone(), args.key.file.options.clone()),
        )?;
        if one.changes.is_empty() {
            outcome.comment = [outcome.comment, one.comment].join("\n").trim().into();
        }
        outcome.changes.extend(one.changes);
        if one.result != Some(true) {
            outcome.result = one.result;
        }
    }
    Ok(outcome.into())
}

/// Parses the key in a name: a whole line, or a key and a comment.
fn key(name: &str, enc: String, comment: String, options: Vec<String>) -> Key {
    if let Some(mut whole) = Key::parse(name) {
        if whole.options.is_empty() {
            whole.options = options;
        }
        if whole.comment.is_empty() {
            whole.comment = comment;
        }
        return whole;
    }
    let (key, own) = name.trim().split_once(char::is_whitespace).unwrap_or((name.trim(), ""));
    let comment = if own.is_empty() { comment } else { own.trim_start().to_owned() };
    Key { options, enc, key: key.to_owned(), comment }
}

/// A user and the path of the `authorized_keys` file.
struct KeyFile {
    user: String,
    config: String,
    hash: Option<String>,
}

impl KeyFile {
    fn keys(&self) -> Result<IndexMap<String, Key>, CallError> {
        File::of(&self.user, &self.config).ok().flatten().map_or(Ok(IndexMap::default()), |file| file.keys())
    }

    fn ensure(&self, context: &StateContext, name: &str, key: Key) -> Result<StateReturn, CallError> {
        let (user, public_key) = (&self.user, key.key.clone());
        if context.test {
            let verb = match would_set_key(user, &self.config, &key)? {
                Outcome::New => "added",
                Outcome::Replaced => "updated",
                _ => {
                    let comment = format!("The authorized host key {public_key} is already present for user {user}");
                    return Ok(StateReturn::ok(name, comment));
                }
            };
            return Ok(StateReturn::predicted(name, format!("Key {public_key} for user {user} is set to be {verb}")));
        }
        let outcome = set_key(user, &self.config, key, self.hash.as_deref())?;
        Ok(self.report(name, &public_key, outcome))
    }

    fn ensure_all(
        &self,
        context: &StateContext,
        name: &str,
        source: &str,
        options: &[String],
    ) -> Result<StateReturn, CallError> {
        let Some(keys) = keys_of(&context.call, source, &context.saltenv)? else {
            let comment = format!("Failed to add the ssh key. Source file {source} is missing");
            return Ok(StateReturn::failed(name, comment));
        };
        if keys.is_empty() {
            return Ok(StateReturn::failed(name, no_keys(source)));
        }
        if context.test {
            let mut comment = String::new();
            for key in keys.values() {
                match would_set_key(&self.user, &self.config, key)? {
                    Outcome::New => comment = format!("{comment}Set to add: {}\n", key.key),
                    Outcome::Replaced => comment = format!("{comment}Set to update: {}\n", key.key),
                    _ => {}
                }
            }
            return Ok(if comment.is_empty() {
                StateReturn::ok(name, format!("All host keys in file {source} are already present"))
            } else {
                StateReturn::predicted(name, comment)
            });
        }
        Ok(self.report(name, name, set_keys(&self.user, &self.config, keys, options, self.hash.as_deref())?))
    }

    fn report(&self, name: &str, key: &str, outcome: Outcome) -> StateReturn {
        let user = &self.user;
        match outcome {
            Outcome::New => StateReturn::ok(name, format!("The authorized host key {key} for user {user} was added"))
                .with_changes(map! {key => "New"}),
            Outcome::Replaced => {
                StateReturn::ok(name, format!("The authorized host key {key} for user {user} was updated"))
                    .with_changes(map! {key => "Updated"})
            }
            Outcome::Failed => StateReturn::failed(
                name,
                "Failed to add the ssh key. Is the home directory available, and/or does the key file exist?",
            ),
            Outcome::Invalid | Outcome::NoKey => {
                StateReturn::failed(name, "Invalid public ssh key, most likely has spaces or invalid syntax")
            }
            Outcome::Unchanged | Outcome::Removed | Outcome::Absent | Outcome::NotRemoved => {
                StateReturn::ok(name, format!("The authorized host key {key} is already present for user {user}"))
            }
        }
    }

    fn ensure_not(&self, context: &StateContext, name: &str, key: &str) -> Result<StateReturn, CallError> {
        if context.test {
            return Ok(if self.keys()?.contains_key(key) {
                StateReturn::predicted(name, format!("Key {key} for user {} is set for removal", self.user))
            } else {
                StateReturn::ok(name, "Key is already absent")
            });
        }
        Ok(removed(name, key, remove_key(&self.user, &self.config, key)?))
    }

    fn ensure_none(&self, context: &StateContext, name: &str, source: &str) -> Result<StateReturn, CallError> {
        let Some(keys) = keys_of(&context.call, source, &context.saltenv)? else {
            let comment = format!("Failed to remove the ssh key. Source file {source} is missing");
            return Ok(StateReturn::failed(name, comment));
        };
        if !context.test {
            return Ok(removed(name, name, remove_keys(&self.user, &self.config, &keys)?));
        }
        if keys.is_empty() {
            return Ok(StateReturn::failed(name, no_keys(source)));
        }
        let have = self.keys()?;
        let going = keys.keys().filter(|key| have.contains_key(*key)).map(|key| format!("Set to remove: {key}\n"));
        let comment: String = going.collect();
        Ok(if comment.is_empty() {
            StateReturn::ok(name, format!("All host keys in file {source} are already absent"))
        } else {
            StateReturn::predicted(name, comment)
        })
    }
}

fn no_keys(source: &str) -> String {
    format!("No keys detected in {source}. Is file properly formatted?")
}

fn removed(name: &str, key: &str, outcome: Outcome) -> StateReturn {
    let changes = if outcome == Outcome::Removed {
        map! {key => "Removed"}
    } else {
        Map::new()
    };
    StateReturn::ok(name, outcome.as_str()).with_changes(changes)
}

/// Describes the further arguments of `ssh_auth.absent`.
pub(crate) fn further_absent(params: &mut ParamList) {
    params.others(Others::Unused);
    for name in ["enc", "comment"] {
        params.further(name, "a string", "Without effect: the key decides.");
    }
    params.further("options", "a list", "Without effect: the key decides.");
}
