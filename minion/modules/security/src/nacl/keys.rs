//! `nacl`: the settings of a call, its keys, and new keys. Keys are 32 bytes, stored as base64 text.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_config::opts::modules;
use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_value::{Map, Value, map};
use crypto_box::aead::OsRng;
use crypto_box::{PublicKey, SecretKey};

/// Execution functions of `nacl` on keys.
pub static FUNCTIONS: Functions<Context> = registry!("nacl", [keygen]);

/// The name of the option with the settings.
const CONFIG: &str = "nacl.config";

/// The keys and the kind of box of a call; by default those of `nacl.config` in the configuration, else in the pillar.
#[derive(Args, Debug, Default)]
pub struct KeyArgs {
    /// Kind of box: `sealedbox`, the default, or `secretbox`.
    pub box_type: Option<String>,
    /// Secret key.
    pub sk: Option<String>,
    /// File of the secret key; by default `master/nacl` in `pki_dir`.
    pub sk_file: Option<String>,
    /// Public key.
    pub pk: Option<String>,
    /// File of the public key; by default `master/nacl.pub` in `pki_dir`.
    pub pk_file: Option<String>,
    /// Old name of `sk`, for secret boxes.
    pub key: Option<String>,
    /// Old name of `sk_file`, for secret boxes.
    pub keyfile: Option<String>,
}

/// The kinds of boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BoxType {
    /// Encrypted with a public key, decrypted with the secret one.
    Sealed,
    /// Encrypted and decrypted with the secret key.
    Secret,
}

/// The settings of a call.
pub(super) struct Settings {
    box_type: Option<String>,
    sk: Option<String>,
    sk_file: String,
    pk: Option<String>,
    pk_file: String,
}

impl Settings {
    /// Reads the settings: arguments, then `nacl.config`, then defaults.
    pub fn of(context: &Context, args: KeyArgs) -> Self {
        let configured = configured(context);
        let setting = |argument: Option<String>, name: &str| {
            let configured = configured.get(name).filter(|value| value.is_truthy());
            argument.filter(|text| !text.is_empty()).or_else(|| configured.map(ToString::to_string))
        };
        let in_pki = |name: &str| context.config().pki_dir.join("master").join(name).display().to_string();
        // The old names are those of a time with secret boxes only.
        let is_old = args.key.is_some() || args.keyfile.is_some();
        let box_type = if is_old { Some("secretbox".to_owned()) } else { args.box_type };
        Settings {
            box_type: setting(box_type, "box_type"),
            sk: setting(args.key.or(args.sk), "sk"),
            sk_file: setting(args.keyfile.or(args.sk_file), "sk_file").unwrap_or_else(|| in_pki("nacl")),
            pk: setting(args.pk, "pk"),
            pk_file: setting(args.pk_file, "pk_file").unwrap_or_else(|| in_pki("nacl.pub")),
        }
    }

    /// Returns the kind of box.
    ///
    /// # Errors
    /// An unknown kind.
    pub fn box_type(&self) -> Result<BoxType, CallError> {
        match self.box_type.as_deref() {
            None | Some("sealedbox") => Ok(BoxType::Sealed),
            Some("secretbox") => Ok(BoxType::Secret),
            Some(other) => {
                Err(CallError::execution(format!("box_type is invalid: expected sealedbox or secretbox, got {other}")))
            }
        }
    }

    /// Returns the secret key.
    ///
    /// # Errors
    /// A file that cannot be read, or an invalid key.
    pub fn secret_key(&self) -> Result<SecretKey, CallError> {
        decode("secret key", self.sk.as_deref(), &self.sk_file).map(SecretKey::from_bytes)
    }

    /// Returns the public key.
    ///
    /// # Errors
    /// A file that cannot be read, or an invalid key.
    pub fn public_key(&self) -> Result<PublicKey, CallError> {
        decode("public key", self.pk.as_deref(), &self.pk_file).map(PublicKey::from_bytes)
    }
}

fn configured(context: &Context) -> Map {
    let options = modules::nacl_config(&context.opts());
    if !options.is_empty() {
        return options;
    }
    context.pillar().get(CONFIG).and_then(Value::as_map).cloned().unwrap_or_default()
}

/// Decodes a key, or else the key in a file. Errors do not contain keys.
fn decode(what: &str, key: Option<&str>, file: &str) -> Result<[u8; 32], CallError> {
    let of_file = || {
        files::read_to_string(file)
            .map_err(|error| CallError::execution(format!("no {what} found: {error}; nacl.keygen creates keys")))
    };
    let (text, from) = match key {
        Some(key) => (key.to_owned(), "the setting".to_owned()),
        None => (of_file()?, format!("the file {file}")),
    };
    let bytes = STANDARD.decode(text.trim_ascii()).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| CallError::execution(format!("the {what} of {from} is invalid: expected 32 bytes in base64")))
}

/// Create a secret key and its public key.
///
/// Without `sk_file`, the keys are the result. A secret key that exists stays, and its public key is written.
///
/// CLI Example:
///
///     salt-call --local nacl.keygen sk_file=/etc/salt/pki/master/nacl
#[function]
pub fn keygen(
    context: &Context,
    /// The file of the secret key.
    sk_file: Option<String>,
    /// The file of the public key; by default `sk_file` with `.pub`.
    pk_file: Option<String>,
    /// An old name of `sk_file`.
    keyfile: Option<String>,
    /// Accepted, without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = (context, kwargs);
    let Some(sk_file) = keyfile.or(sk_file) else {
        let key = SecretKey::generate(&mut OsRng);
        return Ok(map! {"sk" => encode(&key.to_bytes()), "pk" => encode(key.public_key().as_bytes())}.into());
    };
    let pk_file = pk_file.unwrap_or_else(|| format!("{sk_file}.pub"));
    let write_public = |key: &SecretKey| {
        files::write_atomic(&pk_file, encode(key.public_key().as_bytes()).as_bytes(), 0o644)
            .map_err(CallError::execution)
    };
    if Path::new(&sk_file).is_file() {
        if Path::new(&pk_file).is_file() {
            return Err(CallError::execution(format!("sk_file:{sk_file} and pk_file:{pk_file} already exist.")));
        }
        let key = decode("secret key", None, &sk_file).map(SecretKey::from_bytes)?;
        write_public(&key)?;
        return Ok(format!("saved pk_file: {pk_file}").into());
    }
    let key = SecretKey::generate(&mut OsRng);
    create("sk_file", &sk_file, encode(&key.to_bytes()).as_bytes())?;
    write_public(&key)?;
    Ok(format!("saved sk_file:{sk_file}  pk_file: {pk_file}").into())
}

fn encode(key: &[u8]) -> String {
    STANDARD.encode(key)
}

/// Writes a new file with mode 0600. `what` is its name in Salt's message if it exists.
pub(super) fn create(what: &str, path: &str, bytes: &[u8]) -> Result<(), CallError> {
    let is_new = files::write_new(path, bytes, 0o600).map_err(CallError::execution)?;
    if is_new { Ok(()) } else { Err(CallError::execution(format!("{what}:{path} already exist."))) }
}
