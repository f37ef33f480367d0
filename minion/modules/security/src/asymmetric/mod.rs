//! `asymmetric`: signatures of RSA, ECDSA and Ed25519 keys. States verify the signatures of their sources with it
//! (`sig_backend: asymmetric`).
//!
//! Keys are paths, or text in PEM, hexadecimal or Base64. Signatures of RSA keys have the padding PSS.

#[cfg(test)]
mod tests;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_modules_files::file::hex_digest;
use brine_system::user_files;
use brine_value::{Map, Value, map};
use brine_x509::{Digest, KeyKind, PublicKey, digest};

use super::x509::source::{execution, failed, is_file, private_key, public_key_only, read_at_most, read_file};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `asymmetric`.
pub static FUNCTIONS: Functions<Context> = registry!("asymmetric", [sign, verify]);

/// The largest file that is signed or verified: archives and images have some gigabytes.
const MAX_DATA_BYTES: u64 = 4 << 30;

/// Sign a text or a file with a private key, and return the signature in Base64.
///
/// CLI Example:
///
///     salt '*' asymmetric.sign /root/key.pem text='some text'
///     salt '*' asymmetric.sign /root/key.pem filename=/srv/file path=/srv/file.sig
#[function]
pub fn sign(
    context: &Context,
    /// The private key.
    privkey: Value,
    /// Password of the key.
    passphrase: Option<String>,
    /// The text, unless `filename` is given.
    #[default]
    text: Value,
    /// Path of the file.
    filename: Option<String>,
    /// Hash function of RSA and ECDSA keys; `sha256` by default.
    digest: Option<String>,
    /// Whether the signature is bytes instead of Base64; in a file, it is bytes by default.
    raw: Option<bool>,
    /// File that the signature is written to.
    path: Option<String>,
) -> CallResult {
    _ = context;
    let data = match (text_bytes(&text), filename.filter(|name| !name.is_empty())) {
        (Some(data), _) => data,
        (None, Some(file)) => read_at_most(Path::new(&file), MAX_DATA_BYTES)?,
        (None, None) => return Err(execution("Either `text` or `filename` is required")),
    };
    let key = private_key(&privkey, passphrase.as_deref())?;
    let signature = key.sign(&data, hash_function(digest.as_deref(), key.kind())?).map_err(failed)?;
    let path = path.filter(|path| !path.is_empty());
    let signature =
        if raw.unwrap_or(path.is_some()) { Value::Bytes(signature) } else { STANDARD.encode(signature).into() };
    let Some(path) = path else { return Ok(signature) };
    user_files::write(&path, text_bytes(&signature).unwrap_or_default())
        .map_err(|error| execution(format!("writing the signature to {path} failed: {error}")))?;
    Ok(format!("Signature written to '{path}'").into())
}

/// The arguments of `asymmetric.verify`.
#[derive(Args)]
pub struct VerifyArgs {
    /// The text, unless `filename` is given.
    #[default]
    text: Value,
    /// Path of the file.
    filename: Option<String>,
    /// The public key of a single signature: also the URL of a file with it.
    #[default]
    pubkey: Value,
    /// The signature in Base64, the path of a file with it, or a URL; with `signed_by_any` and `signed_by_all` also a
    /// list.
    #[default]
    signature: Value,
    /// Hash function of RSA and ECDSA keys; `sha256` by default.
    digest: Option<String>,
    /// Public keys, one of which must have made a signature.
    #[default]
    signed_by_any: Value,
    /// Public keys, all of which must have made a signature.
    #[default]
    signed_by_all: Value,
    /// Further arguments of `gpg.verify`, which have no effect.
    #[keywords]
    _kwargs: Map,
}

/// Verify the signatures of a text or a file with public keys.
///
/// CLI Example:
///
///     salt '*' asymmetric.verify pubkey=/root/key.pub filename=/srv/file signature=/srv/file.sig
#[function]
pub fn verify(context: &Context, #[args] args: VerifyArgs) -> CallResult {
    let refused = |message: String| Ok(map! {"res" => false, "message" => message}.into());
    let (any, all) = (listed(&args.signed_by_any), listed(&args.signed_by_all));
    let filename = args.filename.as_deref().filter(|name| !name.is_empty());
    if args.text.is_truthy() && filename.is_some() {
        return Err(execution("`text` and `filename` arguments are mutually exclusive"));
    }
    if !args.signature.is_truthy() {
        return Err(execution("Missing `signature` parameter"));
    }
    let is_single = any.is_empty() && all.is_empty();
    if !is_single && args.pubkey.is_truthy() {
        return Err(execution("Either specify pubkey + signature or signed_by_(any|all)"));
    }
    if is_single && !args.pubkey.is_truthy() {
        return Err(execution("Missing pubkey(s) to check against"));
    }
    if is_single && !matches!(args.signature, Value::Str(_) | Value::Bytes(_)) {
        return Err(execution("`signature` must be a string or bytes when verifying a single signing `pubkey`"));
    }
    let data = match (text_bytes(&args.text).filter(|text| !text.is_empty()), filename) {
        (Some(data), _) => data,
        (None, Some(file)) if Path::new(file).exists() => read_at_most(Path::new(file), MAX_DATA_BYTES)?,
        (None, Some(file)) => return Err(execution(format!("Path '{file}' does not exist"))),
        (None, None) => return Err(execution("Missing data to verify. Either specify `text` or `filename`")),
    };
    let mut signatures = Vec::new();
    for signature in listed(&args.signature) {
        match fetched(context, &signature) {
            Ok(signature) => signatures.push(signature),
            Err(error) if is_single => return refused(error.message()),
            Err(error) => tracing::error!("{}", error.message()),
        }
    }
    if signatures.is_empty() {
        return Err(execution("Unable to locate any of the provided signatures"));
    }
    let check = Check { context, data: &data, digest: args.digest.as_deref() };
    let has_signed = |key: &Value| {
        let report = check.signatures_of(key, &signatures);
        report.inspect_err(|error| tracing::info!("{error}")).is_ok()
    };
    if !any.is_empty() && !any.iter().any(has_signed) {
        return refused("None of the public keys listed in signed_by_any provided a valid signature".into());
    }
    for key in if is_single { vec![args.pubkey] } else { all } {
        match check.signatures_of(&key, &signatures) {
            // A signature counts for one key only.
            Ok(of_key) => signatures.retain(|signature| !of_key.contains(signature)),
            Err(error) if is_single => return refused(format!("Failed checking signature: {error}")),
            Err(error) => return refused(format!("Failed while checking `signed_by_all`: {error}")),
        }
    }
    let message = if is_single { "The signature is valid" } else { "All required keys have provided a signature" };
    Ok(map! {"res" => true, "message" => message}.into())
}

/// The verification of signatures of the same data.
struct Check<'a> {
    context: &'a Context,
    data: &'a [u8],
    digest: Option<&'a str>,
}

impl Check<'_> {
    /// Returns the signatures that this key has made: at least one.
    fn signatures_of(&self, key: &Value, signatures: &[Value]) -> Result<Vec<Value>, String> {
        let key = fetched(self.context, key).and_then(|key| public_key_only(&key)).map_err(CallError::message)?;
        let hash = hash_function(self.digest, key.kind()).map_err(CallError::message)?;
        let mut made = Vec::new();
        for signature in signatures {
            let bytes = signature_bytes(signature).map_err(CallError::message)?;
            if key.verify(self.data, &bytes, hash) {
                made.push(signature.clone());
            }
        }
        if made.is_empty() { Err(format!("Invalid signature for key {}", fingerprint(&key))) } else { Ok(made) }
    }
}

/// Returns the SHA-256 digest of a key in DER, in hexadecimal.
fn fingerprint(key: &PublicKey) -> String {
    hex_digest(&key.to_der(), "sha256").unwrap_or_default()
}

/// Returns the hash function of a signature; `None` for Ed25519, which has its own.
fn hash_function(name: Option<&str>, kind: KeyKind) -> Result<Option<Digest>, CallError> {
    if kind == KeyKind::Ed25519 {
        return Ok(None);
    }
    let name = name.filter(|name| !name.is_empty()).unwrap_or("sha256");
    digest(name).map(Some).map_err(failed)
}

/// Returns the bytes of a text; `None` without one.
fn text_bytes(text: &Value) -> Option<Vec<u8>> {
    match text {
        Value::Nil => None,
        Value::Bytes(bytes) => Some(bytes.clone()),
        text => Some(text.to_string().into_bytes()),
    }
}

/// Returns the items of a list; a single value is a list of one, and an empty one is an empty list.
fn listed(value: &Value) -> Vec<Value> {
    match value {
        Value::List(items) => items.clone(),
        value if value.is_truthy() => vec![value.clone()],
        _ => Vec::new(),
    }
}

/// Returns a key or a signature itself, or the path of the cached file if it is a URL.
fn fetched(context: &Context, value: &Value) -> Result<Value, CallError> {
    let Some((scheme, path)) = value.as_str().and_then(|url| url.split_once("://")) else { return Ok(value.clone()) };
    let path = match scheme {
        "file" => path.into(),
        _ => context.call("cp.cache_file", Args::positional([value.clone()]))?,
    };
    if !path.as_str().is_some_and(|path| Path::new(path).exists()) {
        return Err(execution(format!("Failed fetching '{value}'")));
    }
    Ok(path)
}

/// Returns the bytes of a signature: of a file, or of a text; both may be in Base64.
fn signature_bytes(signature: &Value) -> Result<Vec<u8>, CallError> {
    let bytes = if is_file(signature) {
        read_file(Path::new(signature.as_str().unwrap_or_default()))?
    } else {
        text_bytes(signature).unwrap_or_default()
    };
    let packed: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'\n').collect();
    Ok(STANDARD.decode(packed).unwrap_or(bytes))
}
