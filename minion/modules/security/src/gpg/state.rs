//! `gpg`: states of keys in a keychain.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_system::user_files;
use brine_value::{Map, Value, map};

use super::{TRUST, names};

/// The default number of days since the expiry of a subkey within which its key is updated.
const SUBKEY_MAXAGE: i64 = 100;

/// State functions of `gpg`.
pub static FUNCTIONS: Functions<StateContext> = registry!("gpg", [present, absent]);

/// The arguments of `gpg.present`.
#[derive(Args)]
pub struct PresentArgs {
    /// Id of the key, unless `keys` are given.
    pub name: String,
    /// Ids of the keys.
    #[default]
    pub keys: Value,
    /// User whose keychain is used; `salt` is `gpgkeys` in the configuration directory.
    pub user: Option<String>,
    /// Server from which keys are received.
    pub keyserver: Option<String>,
    /// Directory of the keychain.
    pub gnupghome: Option<String>,
    /// Trust in the owner: `expired`, `unknown`, `not_trusted`, `marginally`, `fully` or `ultimately`.
    pub trust: Option<String>,
    /// File of the keyring, instead of that of the keychain.
    pub keyring: Option<String>,
    /// Files with the keys, or URLs, for keys that the server does not have.
    #[default]
    pub source: Value,
    /// Whether no key server is queried.
    #[default(false)]
    pub skip_keyserver: bool,
    /// The keys as text, instead of from a server.
    pub text: Option<String>,
    /// Days since the expiry of a subkey within which the key is updated; 0 never updates keys because of subkeys.
    #[default(SUBKEY_MAXAGE.into())]
    pub subkey_maxage: Value,
    #[keywords(brine_function::unused)]
    _kwargs: Map,
}

/// Ensure that public keys are in a keychain, are not expired, and have this trust.
///
/// SLS Example:
///
///     0xD88E42B4:
///       gpg.present:
///         - keyserver: keys.openpgp.org
///         - user: app
///         - trust: fully
///
///     release_key:
///       gpg.present:
///         - keys:
///           - 1234567890ABCDEF
///         - source: salt://keys/release.asc
///         - skip_keyserver: True
#[function]
pub fn present(context: &StateContext, #[args] args: PresentArgs) -> CallResult {
    if let Some(trust) = &args.trust
        && !TRUST.iter().any(|(name, ..)| name == trust)
    {
        return Ok(StateReturn::failed(&args.name, format!("Invalid trust level {trust}")).into());
    }
    if args.text.is_none() && args.skip_keyserver && !args.source.is_truthy() {
        let comment = "When skipping keyservers, you must provide at least one source";
        return Ok(StateReturn::failed(&args.name, comment).into());
    }
    let chain = Keychain::new(context, args.user.as_deref(), args.gnupghome.as_deref(), args.keyring.as_deref());
    let mut report = StateReturn::ok(&args.name, "");
    let mut lines = Vec::new();
    for key in key_ids(&args.keys, &args.name) {
        let mut reported = Vec::new();
        let before = chain.get(&key)?;
        let state = KeyState::new(before.as_ref(), &args);
        let mut current = before.clone();
        if let Err(error) = chain.ensure(&key, &state, &args, &mut current, &mut report, &mut reported) {
            report.result = Some(false);
            reported.extend(state.failure().map(str::to_owned));
            reported.extend(error.message().lines().map(str::to_owned));
        }
        let is_known = current.is_some() || (context.test && before.is_none());
        if let Some(trust) = args.trust.as_deref().filter(|_| is_known)
            && let Err(error) = chain.ensure_trust(&key, trust, current.as_ref(), &mut report, &mut reported)
        {
            report.result = Some(false);
            reported.push(error.message());
        }
        if !reported.is_empty() {
            lines.push(format!("Key {key}:\n  * {}", reported.join("\n  * ")));
        }
    }
    report.comment = lines.join("\n");
    Ok(report.into())
}

/// Ensure that public keys are not in a keychain.
///
/// SLS Example:
///
///     0xD88E42B4:
///       gpg.absent:
///         - user: app
#[function]
pub fn absent(
    context: &StateContext,
    /// Id of the key, unless `keys` are given.
    name: String,
    /// Ids of the keys, as a list.
    #[default]
    keys: Value,
    /// User whose keychain is used; `salt` is `gpgkeys` in the configuration directory.
    user: Option<String>,
    /// Directory of the keychain.
    gnupghome: Option<String>,
    /// File of the keyring, instead of that of the keychain.
    keyring: Option<String>,
    /// Whether the file `keyring` is removed if it has no keys.
    #[default(false)]
    keyring_absent_if_empty: bool,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let chain = Keychain::new(context, user.as_deref(), gnupghome.as_deref(), keyring.as_deref());
    let (mut report, mut reported, mut deleted) = (StateReturn::ok(&name, ""), Vec::new(), Vec::<Value>::new());
    for key in key_ids(&keys, &name) {
        if chain.get(&key)?.is_none() {
            reported.push(format!("{key} not found in GPG keychain"));
        } else if context.test {
            report.result = None;
            reported.push(format!("Would have deleted {key} from GPG keychain"));
            deleted.push(key.into());
        } else {
            let result = chain.call("gpg.delete_key", map! {"keyid" => key.as_str()})?;
            if result.get("res").is_some_and(Value::is_truthy) {
                reported.push(format!("Deleted {key} from GPG keychain"));
                deleted.push(key.into());
            } else {
                report.result = Some(false);
                reported.push(message(&result));
            }
        }
    }
    if !deleted.is_empty() {
        report.changes = map! {"deleted" => deleted};
    }
    if let Some(keyring) = keyring.filter(|_| keyring_absent_if_empty && !context.test && report.result == Some(true))
        && Path::new(&keyring).is_file()
        && !chain.call("gpg.list_keys", Map::new())?.is_truthy()
    {
        user_files::remove_file(&keyring).map_err(CallError::execution)?;
        reported.push(format!("Removed empty keyring file {keyring}"));
        report.changes.insert("removed".into(), keyring.into());
    }
    report.comment = reported.join("\n");
    Ok(report.into())
}

fn key_ids(keys: &Value, name: &str) -> Vec<String> {
    let keys = names(keys);
    if keys.is_empty() { vec![name.to_owned()] } else { keys }
}

fn message(result: &Value) -> String {
    match result.get("message") {
        Some(Value::List(lines)) => lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        Some(text) => text.to_string(),
        None => String::new(),
    }
}

/// The keychain of a state.
struct Keychain<'a> {
    context: &'a StateContext,
    options: Map,
}

impl<'a> Keychain<'a> {
    fn new(context: &'a StateContext, user: Option<&str>, home: Option<&str>, keyring: Option<&str>) -> Self {
        let named = [("user", user), ("gnupghome", home), ("keyring", keyring)];
        let options = named.into_iter().filter_map(|(name, value)| Some((name.into(), value?.into())));
        Keychain { context, options: options.collect() }
    }

    fn call(&self, function: &str, mut keyword: Map) -> CallResult {
        keyword.extend(self.options.clone());
        self.context.call.call(function, Args { keyword, ..Args::default() })
    }

    fn get(&self, key: &str) -> Result<Option<Map>, CallError> {
        let result = self.call("gpg.get_key", map! {"keyid" => key})?;
        Ok(result.as_map().cloned())
    }

    /// Ensures that a key is present and not expired. `current` becomes the key after that.
    fn ensure(
        &self,
        key: &str,
        state: &KeyState,
        args: &PresentArgs,
        current: &mut Option<Map>,
        report: &mut StateReturn,
        reported: &mut Vec<String>,
    ) -> Result<(), CallError> {
        let refresh = state.is_expired || !state.expired_subkeys.is_empty();
        if current.is_some() && !refresh {
            reported.push(format!("GPG Public Key {key} already in keychain"));
            return Ok(());
        }
        if self.context.test {
            report.result = None;
            reported.extend(state.prediction(key));
            record_change(report, key, if refresh { "refresh" } else { "added" }, true.into());
            return Ok(());
        }
        let message = self.fetch(key, state, args)?;
        let Some(new) = self.get(key)? else {
            return Err(CallError::Execution(format!("{message}\nThe new key {key} could not be retrieved though.")));
        };
        if !refresh {
            record_change(report, key, "added", true.into());
        }
        if is_expired(&new) {
            return Err(CallError::Execution(format!("{message}\nThe new key {key} is expired though.")));
        }
        let (added, extended) = state.updates(&new, args);
        *current = Some(new);
        if !refresh {
            reported.push(format!("Added {key} to GPG keychain"));
        } else if state.is_expired {
            reported.push(format!("Updated {key} because it was expired"));
            record_change(report, key, "refresh", true.into());
        } else if added.is_empty() && extended.is_empty() {
            reported.push(format!(
                "Attempted to update {key} because it has expired subkeys, but no new signatures or keys were found"
            ));
        } else {
            reported.push(format!("Updated {key} because it had expired subkeys."));
            record_change(report, key, "refresh", true.into());
            let subkeys = [("added", added), ("extended", extended)].into_iter().filter(|(_, ids)| !ids.is_empty());
            record_change(
                report,
                key,
                "subkeys",
                subkeys.map(|(how, ids)| (Value::from(how), Value::from(ids))).collect::<Map>().into(),
            );
        }
        Ok(())
    }

    /// Ensures that a key is trusted as requested. A key that test mode would have added is unknown.
    fn ensure_trust(
        &self,
        key: &str,
        trust: &str,
        current: Option<&Map>,
        report: &mut StateReturn,
        reported: &mut Vec<String>,
    ) -> Result<(), CallError> {
        let desired = TRUST.iter().find(|(name, ..)| *name == trust).map(|(_, _, words)| *words);
        // `trust` sets the trust in the owner, from which gpg derives the trust in the key.
        let trusted = current.and_then(|about| about.get("ownerTrust")?.as_str());
        if trusted.is_some()
            && trusted.map(|text| text.replace("Marginally Trusted", "Marginally")).as_deref() == desired
        {
            reported.push(format!("GPG Public Key {key} already in correct trust state"));
            return Ok(());
        }
        if self.context.test {
            report.result = None;
            reported.push(format!("Would have set trust level for {key} to {trust}"));
        } else {
            let result = self.call("gpg.trust_key", map! {"keyid" => key, "trust_level" => trust})?;
            if !result.get("res").is_some_and(Value::is_truthy) {
                return Err(CallError::Execution(message(&result)));
            }
            reported.push(format!("Set trust level for {key} to {trust}"));
        }
        record_change(report, key, "trust", trust.into());
        Ok(())
    }

    /// Adds or updates a key from the text, the server or the first source that has it. Returns the message of gpg.
    fn fetch(&self, key: &str, state: &KeyState, args: &PresentArgs) -> Result<String, CallError> {
        let refresh = state.is_expired || !state.expired_subkeys.is_empty();
        if let Some(text) = args.text.as_deref().filter(|text| !text.is_empty()) {
            return self.import(key, refresh, map! {"text" => text})?.map_err(CallError::Execution);
        }
        let mut failures = Vec::new();
        let mut is_unchanged = false;
        if !args.skip_keyserver {
            let result = self.call("gpg.receive_keys", map! {"keys" => key, "keyserver" => args.keyserver.clone()})?;
            let message = message(&result);
            let is_done = result.get("res").is_some_and(Value::is_truthy);
            // A key that the server has, but without news, is still expired.
            if is_done && (!refresh || message.contains("updated: new")) {
                return Ok(message);
            }
            is_unchanged = is_done && !state.is_expired;
            failures.push(message);
        }
        let sources = names(&args.source);
        for source in &sources {
            let cached = self.context.call.call("cp.cache_file", Args::positional([source.as_str().into()]))?;
            if !cached.is_truthy() {
                continue;
            }
            match self.import(key, refresh, map! {"filename" => cached})? {
                Ok(message) => return Ok(message),
                Err(reason) => tracing::debug!(source, reason, "a source does not have the key"),
            }
        }
        if !sources.is_empty() {
            failures.push(format!("none of the specified sources were found or contained the (unexpired) key {key}."));
        } else if is_unchanged {
            return Ok(failures.join("\n"));
        }
        Err(CallError::Execution(failures.join("\n")))
    }

    /// Imports a key from `text` or `filename`. The inner error is the reason why that does not have the key: an expired
    /// one is no update.
    fn import(&self, key: &str, refresh: bool, from: Map) -> Result<Result<String, String>, CallError> {
        let mut arguments = map! {"keyid" => key};
        arguments.extend(from.iter().map(|(name, value)| {
            (Value::from(if name.as_str() == Some("filename") { "path" } else { "text" }), value.clone())
        }));
        let contained = match self.context.call.call("gpg.read_key", Args::keyword(arguments)) {
            Ok(contained) => contained,
            Err(error) => return Ok(Err(error.message())),
        };
        let Some(contained) = contained.as_list().and_then(<[Value]>::first) else {
            return Ok(Err(format!("Passed text did not contain the requested key {key}")));
        };
        if refresh && contained.as_map().is_some_and(is_expired) {
            return Ok(Err(format!("Passed text contained the key {key}, but it's expired")));
        }
        let mut keyword = from;
        keyword.insert("select".into(), key.into());
        let result = self.call("gpg.import_key", keyword)?;
        if !result.get("res").is_some_and(Value::is_truthy) {
            return Err(CallError::Execution(message(&result)));
        }
        Ok(Ok(message(&result)))
    }
}

fn is_expired(key: &Map) -> bool {
    key.get("expired").is_some_and(Value::is_truthy)
}

fn subkeys(key: &Map) -> impl Iterator<Item = (String, &Map)> {
    let subkeys = key.get("subkeys").and_then(Value::as_list).unwrap_or_default();
    subkeys.iter().filter_map(Value::as_map).map(|subkey| (text(subkey, "keyid"), subkey))
}

fn text(key: &Map, name: &str) -> String {
    key.get(name).map(ToString::to_string).unwrap_or_default()
}

/// The parts of a key that have expired before it is updated.
struct KeyState {
    is_expired: bool,
    /// The expired subkeys and the dates of their expiry.
    expired_subkeys: Vec<(String, String)>,
    subkeys: Vec<String>,
}

impl KeyState {
    fn new(key: Option<&Map>, args: &PresentArgs) -> Self {
        KeyState {
            is_expired: key.is_some_and(is_expired),
            expired_subkeys: key.map(|key| expired_subkeys(key, &args.subkey_maxage)).unwrap_or_default(),
            subkeys: key.map(|key| subkeys(key).map(|(id, _)| id).collect()).unwrap_or_default(),
        }
    }

    /// Returns the comment that precedes the error of a failed update.
    fn failure(&self) -> Option<&'static str> {
        if self.is_expired {
            Some("Existing key is expired, tried to fetch updated one")
        } else if self.expired_subkeys.is_empty() {
            None
        } else {
            Some("Existing key has expired subkeys, tried to refresh")
        }
    }

    /// Returns the comment of test mode.
    fn prediction(&self, key: &str) -> Vec<String> {
        if self.is_expired {
            return vec![format!("Would have attempted to update {key} because it is expired")];
        }
        if self.expired_subkeys.is_empty() {
            return vec![format!("Would have added {key} to GPG keychain")];
        }
        let first = format!("Would have attempted to update {key} because it has expired subkeys:");
        let each = self.expired_subkeys.iter().map(|(id, date)| format!("  - {id} (expired on {date})"));
        std::iter::once(first).chain(each).collect()
    }

    /// Returns the subkeys that an update has added, and those whose expiry it has postponed.
    fn updates(&self, new: &Map, args: &PresentArgs) -> (Vec<String>, Vec<String>) {
        let still = expired_subkeys(new, &args.subkey_maxage);
        let added = subkeys(new).map(|(id, _)| id).filter(|id| !self.subkeys.contains(id)).collect();
        let expired = self.expired_subkeys.iter().map(|(id, _)| id.clone());
        (added, expired.filter(|id| !still.iter().any(|(other, _)| other == id)).collect())
    }
}

/// Returns the subkeys that have expired in the last `max_days` days, with their dates; none for 0 days.
fn expired_subkeys(key: &Map, max_days: &Value) -> Vec<(String, String)> {
    let Some(max_days) = max_days.as_i64().filter(|days| *days != 0) else { return Vec::new() };
    let today = brine_clock::now().date();
    let is_recent = |date: &str| {
        let date: Option<jiff::civil::Date> = date.parse().ok();
        date.and_then(|date| date.until(today).ok()).is_some_and(|span| i64::from(span.get_days()) <= max_days)
    };
    subkeys(key)
        .filter(|(_, subkey)| is_expired(subkey))
        .map(|(id, subkey)| (id, text(subkey, "expires")))
        .filter(|(_, date)| is_recent(date))
        .collect()
}

fn record_change(report: &mut StateReturn, key: &str, what: &str, value: Value) {
    let of = report.changes.entry(key.into()).or_insert_with(|| Map::new().into());
    if let Value::Map(of) = of {
        of.insert(what.into(), value);
    }
}
