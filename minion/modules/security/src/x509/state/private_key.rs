//! `x509.private_key_managed`.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, function};
use brine_value::{Map, Value};
use brine_x509::{LoadedKey, PrivateKey, X509Error};

use super::{Content, FileArgs, Managed};
use crate::x509::source::{execution, failed, read_file};
use crate::x509::{deprecated, encode, reject_unknown_kwargs};

/// Changes that need no new key.
const FORMAT_CHANGES: [&str; 2] = ["encoding", "passphrase"];

/// The arguments of `x509.private_key_managed`.
#[derive(Args)]
pub struct PrivateKeyArgs {
    /// Path of the key.
    name: String,
    /// `rsa`, `ec` or `ed25519`.
    #[default("rsa".into())]
    algo: String,
    /// Bits: 2048, 3072 or 4096 for RSA (2048); 256, 384 or 521 for elliptic curves (256).
    keysize: Option<i64>,
    /// The old name of `keysize`.
    bits: Option<i64>,
    /// Password that encrypts the key.
    passphrase: Option<String>,
    /// `pem`, `der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Whether a new key is created even if there is one.
    #[default(false)]
    new: bool,
    /// Whether a file that is no private key, or has another password, is replaced.
    #[default(false)]
    overwrite: bool,
    /// Whether `pkcs12` is encrypted so that old programs read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// Without effect, as in Salt.
    #[default]
    cipher: Value,
    /// Without effect, as in Salt.
    #[default]
    verbose: Value,
    /// Without effect, as in Salt.
    #[default]
    text: Value,
    #[args]
    file: FileArgs,
    /// No further arguments.
    #[keywords]
    kwargs: Map,
}

/// Ensure that a file has a private key of a type and size. The mode of the file is 0400 by default.
///
/// SLS Example:
///
///     /etc/pki/web.key:
///       x509.private_key_managed:
///         - algo: ec
///         - keysize: 256
///         - mode: '0600'
#[function]
pub fn private_key_managed(context: &StateContext, #[args] mut args: PrivateKeyArgs) -> CallResult {
    reject_unknown_kwargs(&args.kwargs)?;
    deprecated::all_without_effect(&[("cipher", &args.cipher), ("verbose", &args.verbose), ("text", &args.text)]);
    if args.bits.is_some() {
        deprecated::renamed("bits", "keysize");
    }
    args.keysize = args.bits.or(args.keysize);
    if !args.file.mode.is_truthy() {
        args.file.mode = "0400".into();
    }
    let managed = Managed { context, name: &args.name, file: &args.file, noun: "private key" };
    managed.result(state(&managed, &args))
}

fn state(managed: &Managed<'_>, args: &PrivateKeyArgs) -> Result<StateReturn, CallError> {
    if args.keysize.is_some() && args.algo.starts_with("ed") {
        return Err(execution(format!("keysize is an invalid parameter for {}", args.algo)));
    }
    encode::check_key_encoding(&args.encoding)?;
    let before = match managed.inspect()? {
        Ok(before) => before,
        Err(ended) => return Ok(ended),
    };
    let exists = !before.replaces_link && before.path.is_file();
    let (mut changes, mut current) = (Map::new(), None);
    if exists && !args.new {
        let (loaded, change) = load(&read_file(&before.path)?, args)?;
        changes.extend(change.map(|change| (Value::from(change), true.into())));
        if change == Some("replaced") {
            changes.insert("replaced".into(), args.name.as_str().into());
        }
        if let Some(loaded) = &loaded {
            changes.extend(compared(loaded, args));
        }
        current = loaded;
    } else {
        let how = if exists || before.replaces_link { "replaced" } else { "created" };
        changes.insert(how.into(), args.name.as_str().into());
    }
    let only_form = changes.keys().all(|key| FORMAT_CHANGES.iter().any(|form| key.as_str() == Some(form)));
    managed.finish(before, changes, exists, move || {
        let key = match current.filter(|_| only_form) {
            Some(loaded) => loaded.key,
            None => PrivateKey::generate(&args.algo, args.keysize).map_err(failed)?,
        };
        let compatible = args.pkcs12_encryption_compat;
        let encoded = encode::private_key(key, &args.encoding, args.passphrase.as_deref(), compatible)?;
        Ok(Content { bytes: encoded.bytes, is_text: encoded.is_text })
    })
}

/// Loads the key of the file. Returns it unless it is to be replaced, and the name of the change: `passphrase` if the
/// password differs, `replaced` if the file is no private key.
///
/// # Errors
/// The key would be replaced, but `overwrite` is not set.
fn load(bytes: &[u8], args: &PrivateKeyArgs) -> Result<(Option<LoadedKey>, Option<&'static str>), CallError> {
    let refused = |what: &str| if args.overwrite { Ok(()) } else { Err(execution(what)) };
    match PrivateKey::load(bytes, args.passphrase.as_deref()) {
        Ok(loaded) => Ok((Some(loaded), None)),
        Err(X509Error::NeedlessPassword) => {
            Ok((Some(PrivateKey::load(bytes, None).map_err(failed)?), Some("passphrase")))
        }
        Err(X509Error::WrongPassword) => {
            refused(
                "The provided passphrase cannot decrypt the private key. Pass overwrite: true to force regeneration",
            )?;
            Ok((None, Some("passphrase")))
        }
        Err(X509Error::MissingPassword) => {
            let what = "The existing file is encrypted. Pass overwrite: true to force regeneration without passphrase";
            refused(what)?;
            Ok((None, Some("passphrase")))
        }
        Err(X509Error::Unreadable(_)) => {
            refused(
                "The existing file does not seem to be a private key formatted as DER, PEM or embedded in PKCS12. Pass \
                 overwrite: true to force regeneration",
            )?;
            Ok((None, Some("replaced")))
        }
        Err(error) => Err(failed(error)),
    }
}

fn compared(loaded: &LoadedKey, args: &PrivateKeyArgs) -> Map {
    let mut changes = Map::new();
    let size = args.keysize.or(match &args.algo[..] {
        "rsa" => Some(2048),
        "ec" => Some(256),
        _ => None,
    });
    if loaded.key.algorithm() != args.algo {
        changes.insert("algo".into(), args.algo.as_str().into());
    } else if let Some(size) = size
        && loaded.key.size() != usize::try_from(size).ok()
    {
        changes.insert("keysize".into(), size.into());
    }
    if loaded.encoding != args.encoding {
        changes.insert("encoding".into(), args.encoding.as_str().into());
    }
    changes
}
