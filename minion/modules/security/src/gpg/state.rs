//! `gpg`: states of keys in a keychain.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use super::{TRUST, names};

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
    #[keywords]
    _kwargs: Map,
}

/// Ensure that public keys are in a keychain, are not expired, and have this trust.
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
        if let Err(error) = chain.ensure(&key, &args, &mut report, &mut reported) {
            report.result = Some(false);
            reported.extend(error.message().lines().map(str::to_owned));
        }
        if !reported.is_empty() {
            lines.push(format!("Key {key}:\n  * {}", reported.join("\n  * ")));
        }
    }
    report.comment = lines.join("\n");
    Ok(report.into())
}

/// Ensure that public keys are not in a keychain.
#[function]
pub fn absent(
    context: &StateContext,
    name: String,
    #[default] keys: Value,
    user: Option<String>,
    gnupghome: Option<String>,
    keyring: Option<String>,
    #[keywords] _kwargs: Map,
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
            let done = chain.call("gpg.delete_key", map! {"keyid" => key.as_str()})?;
            if done.get("res").is_some_and(Value::is_truthy) {
                reported.push(format!("Deleted {key} from GPG keychain"));
                deleted.push(key.into());
            } else {
                report.result = Some(false);
                reported.push(message(&done));
            }
        }
    }
    if !deleted.is_empty() {
        report.changes = map! {"deleted" => deleted};
    }
    report.comment = reported.join("\n");
    Ok(report.into())
}

fn key_ids(keys: &Value, name: &str) -> Vec<String> {
    let keys = names(keys);
    if keys.is_empty() { vec![name.to_owned()] } else { keys }
}

fn message(done: &Value) -> String {
    match done.get("message") {
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
        let found = self.call("gpg.get_key", map! {"keyid" => key})?;
        Ok(found.as_map().cloned())
    }

    /// Ensures that one key is present, not expired, and trusted as requested.
    fn ensure(
        &self,
        key: &str,
        args: &PresentArgs,
        report: &mut StateReturn,
        reported: &mut Vec<String>,
    ) -> Result<(), CallError> {
        let is_expired = |found: &Map| found.get("expired").is_some_and(Value::is_truthy);
        let mut found = self.get(key)?;
        let refresh = found.as_ref().is_some_and(is_expired);
        if found.is_some() && !refresh {
            reported.push(format!("GPG Public Key {key} already in keychain"));
        } else if self.context.test {
            report.result = None;
            let (change, comment) = if refresh {
                ("refresh", format!("Would have attempted to update {key} because it is expired"))
            } else {
                ("added", format!("Would have added {key} to GPG keychain"))
            };
            reported.push(comment);
            record_change(report, key, change, true.into());
        } else {
            self.fetch(key, args)?;
            found = self.get(key)?;
            let Some(new) = &found else {
                return Err(CallError::Execution(format!("The new key {key} could not be retrieved though.")));
            };
            if is_expired(new) {
                return Err(CallError::Execution(format!("The new key {key} is expired though.")));
            }
            let (change, comment) = if refresh {
                ("refresh", format!("Updated {key} because it was expired"))
            } else {
                ("added", format!("Added {key} to GPG keychain"))
            };
            reported.push(comment);
            record_change(report, key, change, true.into());
        }
        let Some(trust) = &args.trust else { return Ok(()) };
        let wanted = TRUST.iter().find(|(name, ..)| name == trust).map(|(_, _, words)| *words);
        let trusted = |name: &str| found.as_ref().and_then(|found| found.get(name)?.as_str());
        // `trust` sets the trust in the owner, from which gpg derives the trust in the key.
        if trusted("ownerTrust").is_some()
            && trusted("ownerTrust").map(|text| text.replace("Marginally Trusted", "Marginally")).as_deref() == wanted
        {
            reported.push(format!("GPG Public Key {key} already in correct trust state"));
            return Ok(());
        }
        if self.context.test {
            report.result = None;
            reported.push(format!("Would have set trust level for {key} to {trust}"));
        } else {
            let done = self.call("gpg.trust_key", map! {"keyid" => key, "trust_level" => trust.as_str()})?;
            if !done.get("res").is_some_and(Value::is_truthy) {
                return Err(CallError::Execution(message(&done)));
            }
            reported.push(format!("Set trust level for {key} to {trust}"));
        }
        record_change(report, key, "trust", trust.as_str().into());
        Ok(())
    }

    /// Adds a key from the text, the server or the first source that has it.
    fn fetch(&self, key: &str, args: &PresentArgs) -> Result<(), CallError> {
        let is_done = |done: &Value| done.get("res").is_some_and(Value::is_truthy);
        let import = |from: Map| {
            let mut keyword = from;
            keyword.insert("select".into(), key.into());
            self.call("gpg.import_key", keyword)
        };
        if let Some(text) = &args.text {
            let done = import(map! {"text" => text.as_str()})?;
            return if is_done(&done) { Ok(()) } else { Err(CallError::Execution(message(&done))) };
        }
        let mut reasons = Vec::new();
        if !args.skip_keyserver {
            let done = self.call("gpg.receive_keys", map! {"keys" => key, "keyserver" => args.keyserver.clone()})?;
            if is_done(&done) {
                return Ok(());
            }
            reasons.push(message(&done));
        }
        let sources = names(&args.source);
        for source in &sources {
            let cached = self.context.call.call("cp.cache_file", Args::positional([source.as_str().into()]))?;
            if !cached.is_truthy() {
                continue;
            }
            let done = import(map! {"filename" => cached})?;
            let has_keys = done.get("fingerprints").is_some_and(Value::is_truthy);
            if is_done(&done) && has_keys {
                return Ok(());
            }
        }
        if !sources.is_empty() {
            reasons.push(format!("none of the specified sources were found or contained the (unexpired) key {key}."));
        }
        Err(CallError::Execution(reasons.join("\n")))
    }
}

fn record_change(report: &mut StateReturn, key: &str, what: &str, value: Value) {
    let of = report.changes.entry(key.into()).or_insert_with(|| Map::new().into());
    if let Value::Map(of) = of {
        of.insert(what.into(), value);
    }
}
