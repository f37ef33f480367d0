//! `nacl`: texts encrypted in the boxes of NaCl, as libsodium and PyNaCl have them. The renderer `nacl` calls `nacl.dec`.
//!
//! | file | owns |
//! |---|---|
//! | `mod.rs` | encryption and decryption of texts and files |
//! | `keys.rs` | the settings of a call, its keys, and new keys |

mod keys;
#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};
use crypto_box::aead::rand_core::RngCore as _;
use crypto_box::aead::{Aead as _, OsRng};
use crypto_secretbox::{KeyInit as _, Nonce, XSalsa20Poly1305};

use keys::{BoxType, KeyArgs, Settings};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS, &keys::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `nacl` that encrypt and decrypt.
pub static FUNCTIONS: Functions<Context> = registry!(
    "nacl",
    [enc, enc_file, dec, dec_file, sealedbox_encrypt, sealedbox_decrypt, secretbox_encrypt, secretbox_decrypt]
);

/// The arguments of `nacl.enc_file` and `nacl.dec_file`.
#[derive(Args)]
pub struct FileArgs {
    /// File to read: a local one, or one with a URL such as `salt://path`.
    pub name: String,
    /// File that the result is written to, with mode 0600; it must not exist. Without it, the result is returned.
    pub out: Option<String>,
    #[args]
    pub keys: KeyArgs,
}

/// Encrypt a text: in a sealed box, which needs only the public key, or in a secret box (`box_type`).
///
/// CLI Example:
///
///     salt-call --local nacl.enc datatoenc pk_file=/etc/salt/pki/master/nacl.pub
#[function]
pub fn enc(
    context: &Context,
    /// Data to encrypt or decrypt.
    data: Value,
    #[args] keys: KeyArgs,
    /// Accepted, without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = kwargs;
    let settings = Settings::of(context, keys);
    encrypt(&settings, settings.box_type()?, &data)
}

/// Decrypt a text of `nacl.enc`. The result is a text, or bytes that are no UTF-8.
///
/// CLI Example:
///
///     salt-call --local nacl.dec data='pEXHQM6cuaF7A=' sk_file=/etc/salt/pki/master/nacl
#[function]
pub fn dec(
    context: &Context,
    /// Data to encrypt or decrypt.
    data: Value,
    #[args] keys: KeyArgs,
    /// Accepted, without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = kwargs;
    let settings = Settings::of(context, keys);
    decrypt(&settings, settings.box_type()?, &data)
}

/// Encrypt a file.
///
/// CLI Example:
///
///     salt-call nacl.enc_file name=salt://crt/mycert out=/tmp/cert
#[function]
pub fn enc_file(
    context: &Context,
    #[args] args: FileArgs,
    /// Accepted, without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = kwargs;
    let settings = Settings::of(context, args.keys);
    write_or_return(args.out, encrypt(&settings, settings.box_type()?, &content(context, &args.name)?)?)
}

/// Decrypt a file of `nacl.enc_file`.
///
/// CLI Example:
///
///     salt-call nacl.dec_file name=salt://crt/mycert.nacl out=/tmp/id_rsa
#[function]
pub fn dec_file(
    context: &Context,
    #[args] args: FileArgs,
    /// Accepted, without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = kwargs;
    let settings = Settings::of(context, args.keys);
    write_or_return(args.out, decrypt(&settings, settings.box_type()?, &content(context, &args.name)?)?)
}

/// Encrypt a text with the public key. Only the secret key decrypts it.
///
/// CLI Example:
///
///     salt-call --local nacl.sealedbox_encrypt datatoenc pk='vrwQF7cNiNAVQVAiS3bvcbJUnF0cN6fU9YTZD9mBfzQ='
#[function]
pub fn sealedbox_encrypt(
    context: &Context,
    /// Data to encrypt or decrypt.
    data: Value,
    #[args] keys: KeyArgs,
    /// Accepted, without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = kwargs;
    encrypt(&Settings::of(context, keys), BoxType::Sealed, &data)
}

/// Decrypt a text of `nacl.sealedbox_encrypt` with the secret key.
///
/// CLI Example:
///
///     salt-call --local nacl.sealedbox_decrypt data='pEXHQM6cuaF7A=' sk_file=/etc/salt/pki/master/nacl
#[function]
pub fn sealedbox_decrypt(
    context: &Context,
    /// Data to encrypt or decrypt.
    data: Value,
    #[args] keys: KeyArgs,
    /// Accepted, without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = kwargs;
    decrypt(&Settings::of(context, keys), BoxType::Sealed, &data)
}

/// Encrypt a text with the secret key, which also decrypts it.
///
/// CLI Example:
///
///     salt-call --local nacl.secretbox_encrypt datatoenc sk_file=/etc/salt/pki/master/nacl
#[function]
pub fn secretbox_encrypt(
    context: &Context,
    /// Data to encrypt or decrypt.
    data: Value,
    #[args] keys: KeyArgs,
    /// Accepted, without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = kwargs;
    encrypt(&Settings::of(context, keys), BoxType::Secret, &data)
}

/// Decrypt a text of `nacl.secretbox_encrypt` with the secret key.
///
/// CLI Example:
///
///     salt-call --local nacl.secretbox_decrypt data='pEXHQM6cuaF7A=' sk_file=/etc/salt/pki/master/nacl
#[function]
pub fn secretbox_decrypt(
    context: &Context,
    /// Data to encrypt or decrypt.
    data: Value,
    #[args] keys: KeyArgs,
    /// Accepted, without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = kwargs;
    decrypt(&Settings::of(context, keys), BoxType::Secret, &data)
}

/// Returns the box as base64 text.
fn encrypt(settings: &Settings, box_type: BoxType, data: &Value) -> CallResult {
    let plaintext = bytes(data)?;
    let failed = || CallError::execution("encrypting the data failed");
    let sealed = match box_type {
        BoxType::Sealed => settings.public_key()?.seal(&mut OsRng, plaintext).map_err(|_| failed())?,
        BoxType::Secret => {
            let mut nonce = Nonce::default();
            OsRng.try_fill_bytes(&mut nonce).map_err(CallError::execution)?;
            let cipher = XSalsa20Poly1305::new(&settings.secret_key()?.to_bytes().into());
            let ciphertext = cipher.encrypt(&nonce, plaintext).map_err(|_| failed())?;
            [nonce.as_slice(), &ciphertext].concat()
        }
    };
    Ok(STANDARD.encode(sealed).into())
}

fn decrypt(settings: &Settings, box_type: BoxType, data: &Value) -> CallResult {
    if data.is_nil() {
        return Ok(Value::Nil);
    }
    let sealed = STANDARD.decode(bytes(data)?.trim_ascii()).map_err(|error| {
        CallError::execution(format!("the encrypted data is not base64: {error}; pass the result of nacl.enc"))
    })?;
    let key = settings.secret_key()?;
    let opened = match box_type {
        BoxType::Sealed => key.unseal(&sealed).ok(),
        BoxType::Secret => sealed.split_at_checked(XSalsa20Poly1305::NONCE_SIZE).and_then(|(nonce, ciphertext)| {
            XSalsa20Poly1305::new(&key.to_bytes().into()).decrypt(Nonce::from_slice(nonce), ciphertext).ok()
        }),
    };
    let plaintext = opened.ok_or_else(|| {
        CallError::execution("decrypting the data failed: it was changed, or encrypted for another key or box_type")
    })?;
    Ok(String::from_utf8(plaintext).map_or_else(|error| error.into_bytes().into(), Value::from))
}

/// Returns the bytes of a text. The error does not contain the data, which may be a secret.
fn bytes(data: &Value) -> Result<&[u8], CallError> {
    data.as_bytes().ok_or_else(|| {
        CallError::execution(
            "the data is invalid: expected a text; on the command line, quote a number twice: \"'42'\"",
        )
    })
}

/// Returns the content of a local file or a URL.
fn content(context: &Context, name: &str) -> CallResult {
    match context.call("cp.get_file_str", Args::positional([name.into()]))? {
        Value::Bool(false) => Err(CallError::execution(format!("the file {name} does not exist"))),
        content => Ok(content),
    }
}

fn write_or_return(out: Option<String>, data: Value) -> CallResult {
    let Some(out) = out else { return Ok(data) };
    keys::create("file", &out, bytes(&data)?)?;
    Ok(format!("Wrote: {out}").into())
}
