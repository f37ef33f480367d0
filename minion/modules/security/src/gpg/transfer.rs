//! `gpg`: import and export of keys, and key servers.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_system::user_files;
use brine_value::{Map, Value, map};
use jiff::Timestamp;

use super::keyring::{self, HomeArgs, Keyring, Outcome};
use super::{checked_names, data, passphrase};

/// Execution functions of `gpg` that import, export, search and receive keys.
pub static FUNCTIONS: Functions<Context> =
    registry!("gpg", [import_key, export_key, search_keys, receive_keys, read_key]);

/// The default key server.
const KEY_SERVER: &str = "keys.openpgp.org";

/// Import keys from a text or a file; `select` limits the import to these keys.
///
/// CLI Example:
///
///     salt '*' gpg.import_key filename='/path/to/public-key-file'
#[function]
pub fn import_key(
    context: &Context,
    /// Keys as text.
    text: Option<String>,
    /// Path of the file with the keys.
    filename: Option<String>,
    #[args] home: HomeArgs,
    /// File of the keyring, instead of that of the keychain.
    keyring: Option<String>,
    /// Ids of the keys to import; all by default.
    #[default]
    select: Value,
) -> CallResult {
    let ring = Keyring::open(context, &home, keyring)?;
    let mut words = vec!["--import".to_owned()];
    let input = match (text, filename) {
        (Some(text), None) => Some(text),
        (None, Some(file)) => {
            let file = argument(&file)?;
            std::fs::metadata(&file).map_err(|_| CallError::Execution("filename does not exist.".into()))?;
            words.push(file);
            None
        }
        (None, None) => return Err(CallError::Execution("filename or text must be passed.".into())),
        (Some(_), Some(_)) => {
            return Err(CallError::Execution("filename and text are mutually exclusive.".into()));
        }
    };
    let select = checked_names(&select)?;
    if !select.is_empty() {
        return selected(&ring, &words, input.as_deref(), &select, context);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(imported(&ring.run(&words, None, input.as_deref())?).into())
}

/// Imports the selected keys, through a temporary keyring: GnuPG can only import all keys of a file.
fn selected(
    ring: &Keyring<'_>,
    words: &[String],
    input: Option<&str>,
    select: &[String],
    context: &Context,
) -> CallResult {
    let directory = context.call("temp.dir", Args::default())?.to_string();
    let home = HomeArgs { user: None, gnupghome: Some(directory.clone()) };
    let result = Keyring::open(context, &home, None).and_then(|apart| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let outcome = apart.run(&words, None, input)?;
        let report = imported(&outcome);
        if report.get("res") != Some(&true.into()) {
            return Ok(report.into());
        }
        let mut export = vec!["--armor", "--export"];
        export.extend(select.iter().map(String::as_str));
        let text = apart.run(&export, None, None)?.output.stdout;
        if text.is_empty() {
            let message = "After filtering, no keys to import were left.";
            return Ok(map! {"res" => true, "message" => message, "fingerprints" => Vec::<Value>::new()}.into());
        }
        Ok(imported(&ring.run(&["--import"], None, Some(&text))?).into())
    });
    if let Err(error) = user_files::remove_dir_all(&directory) {
        tracing::warn!(directory, %error, "a temporary keyring is left behind");
    }
    result
}

/// Returns Salt's result of an import: `res`, `message` and `fingerprints`.
fn imported(outcome: &Outcome) -> Map {
    let fingerprints: Vec<Value> = outcome
        .status
        .iter()
        .filter(|(name, _)| name == "IMPORT_OK")
        .filter_map(|(_, rest)| Some(rest.split(' ').nth(1)?.into()))
        .collect();
    // The fields of `IMPORT_RES`: count, no user id, imported, imported RSA keys, unchanged, ..., not imported.
    let counts: Vec<u64> = outcome
        .status("IMPORT_RES")
        .map(|rest| rest.split(' ').map(|number| number.parse().unwrap_or_default()).collect())
        .unwrap_or_default();
    let count = |at: usize| counts.get(at).copied().unwrap_or_default();
    let (is_done, message) = match (count(2) + count(3), count(4)) {
        (1.., _) => (true, "Successfully imported key(s)."),
        (0, 1..) => (true, "Key(s) already exist in keychain."),
        (0, 0) if count(13) > 0 || count(0) == 0 => (false, "Unable to import key."),
        // Only signatures, subkeys or user ids of known keys are new.
        (0, 0) => (true, ""),
    };
    map! {"res" => is_done, "message" => message, "fingerprints" => fingerprints}
}

/// The arguments of `gpg.export_key`.
#[derive(Args)]
pub struct ExportArgs {
    /// Keys: ids, fingerprints or email addresses.
    #[default]
    pub keyids: Value,
    /// Whether the secret keys are exported.
    #[default(false)]
    pub secret: bool,
    #[args]
    pub home: HomeArgs,
    /// Whether the secret keys are protected by the passphrase `gpg_passphrase` of the pillar.
    #[default(false)]
    pub use_passphrase: bool,
    /// File to which the keys are written.
    pub output: Option<String>,
    /// Whether the result is the text of the keys alone.
    #[default(false)]
    pub bare: bool,
    /// File of the keyring, instead of that of the keychain.
    pub keyring: Option<String>,
}

/// Export keys as text.
///
/// CLI Example:
///
///     salt '*' gpg.export_key keyids=3FAD9F1E secret=True
#[function]
pub fn export_key(context: &Context, #[args] args: ExportArgs) -> CallResult {
    let passphrase = passphrase(context, args.secret && args.use_passphrase)?;
    let names = checked_names(&args.keyids)?;
    let ring = Keyring::open(context, &args.home, args.keyring)?;
    let mut words = vec!["--armor", if args.secret { "--export-secret-keys" } else { "--export" }];
    words.extend(names.iter().map(String::as_str));
    let text = ring.run(&words, passphrase.as_deref(), None)?.output.stdout;
    if text.is_empty() {
        return Ok(if args.bare { false.into() } else { map! {"res" => false}.into() });
    }
    data::write_or_return(text, args.output.as_deref(), args.bare, "Exported key data")
}

/// Search a server for keys by email address, key id or fingerprint.
///
/// CLI Example:
///
///     salt '*' gpg.search_keys user@example.com
#[function]
pub fn search_keys(
    context: &Context,
    /// Text to search for, such as a mail address.
    text: String,
    /// Server to ask.
    keyserver: Option<String>,
    #[args] home: HomeArgs,
) -> CallResult {
    let server = argument(keyserver.as_deref().unwrap_or(KEY_SERVER))?;
    let text = argument(&text)?;
    let ring = Keyring::open(context, &home, None)?;
    let outcome = ring.run(&["--keyserver", &server, "--with-colons", "--search-keys", &text], None, None)?;
    Ok(keyring::parse_search_results(&outcome.output.stdout, Timestamp::now().as_second())
        .into_iter()
        .map(Value::from)
        .collect())
}

/// Receive keys from a server.
///
/// CLI Example:
///
///     salt '*' gpg.receive_keys keys='3FAD9F1E'
#[function]
pub fn receive_keys(
    context: &Context,
    /// Server to ask.
    keyserver: Option<String>,
    /// Ids of the keys, as a list or with commas.
    #[default]
    keys: Value,
    #[args] home: HomeArgs,
    /// File of the keyring, instead of that of the keychain.
    keyring: Option<String>,
) -> CallResult {
    let server = argument(keyserver.as_deref().unwrap_or(KEY_SERVER))?;
    let names = checked_names(&keys)?;
    let mut words = vec!["--keyserver", &server, "--recv-keys"];
    words.extend(names.iter().map(String::as_str));
    let outcome = Keyring::open(context, &home, keyring)?.run(&words, None, None)?;
    let mut messages: Vec<Value> = Vec::new();
    for (name, rest) in &outcome.status {
        let fingerprint = rest.split(' ').nth(1).unwrap_or_default();
        match (name.as_str(), rest.split(' ').next().unwrap_or_default()) {
            ("IMPORT_OK", "0") => messages.push(format!("Key {fingerprint} already exists in keychain").into()),
            ("IMPORT_OK", "4") => messages.push(format!("Key {fingerprint} updated: new signatures").into()),
            ("IMPORT_OK", "8") => messages.push(format!("Key {fingerprint} updated: new subkeys").into()),
            ("IMPORT_OK", _) => messages.push(format!("Key {fingerprint} added to keychain").into()),
            ("IMPORT_PROBLEM", _) => messages.push("Unable to add key to keychain: No further description".into()),
            _ => {}
        }
    }
    let is_done = outcome.output.retcode == 0 && outcome.status("IMPORT_OK").is_some();
    if !is_done {
        messages.push(format!("GPG reported failure: {}", outcome.errors()).into());
    }
    Ok(map! {"res" => is_done, "message" => messages}.into())
}

/// Return the keys in a file or a text, without importing them.
///
/// CLI Example:
///
///     salt '*' gpg.read_key /tmp/my-key.asc
#[function]
pub fn read_key(
    context: &Context,
    /// Path of the file with the keys.
    path: Option<String>,
    /// Keys as text.
    text: Option<String>,
    /// Fingerprint of the key.
    fingerprint: Option<String>,
    /// Id of the key.
    keyid: Option<String>,
    #[args] home: HomeArgs,
) -> CallResult {
    _ = home;
    let (path, text) = match (path, text) {
        (Some(path), None) => {
            let path = argument(&path)?;
            std::fs::metadata(&path).map_err(|_| CallError::Execution("filename does not exist.".into()))?;
            (Some(path), None)
        }
        (None, Some(text)) => (None, Some(text)),
        _ => return Err(CallError::Execution("Exactly one of text or path is required".into())),
    };
    let directory = context.call("temp.dir", Args::default())?.to_string();
    let apart = HomeArgs { user: None, gnupghome: Some(directory.clone()) };
    let keys = Keyring::open(context, &apart, None).and_then(|ring| {
        let words: Vec<&str> = std::iter::once("--import").chain(path.as_deref()).collect();
        ring.run(&words, None, text.as_deref())?;
        ring.keys(false)
    });
    if let Err(error) = user_files::remove_dir_all(&directory) {
        tracing::warn!(directory, %error, "a temporary keyring is left behind");
    }
    let field = |key: &Map, name: &str| key.get(name).map(ToString::to_string).unwrap_or_default();
    let is_asked = |key: &Map| {
        let id = field(key, "keyid");
        fingerprint.as_ref().is_none_or(|expected| field(key, "fingerprint") == *expected)
            && keyid.as_ref().is_none_or(|expected| id == *expected || id.get(8..) == Some(expected))
    };
    Ok(keys?.into_iter().filter(is_asked).map(Value::from).collect())
}
