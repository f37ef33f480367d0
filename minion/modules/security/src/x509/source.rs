//! Keys and certificates that arguments refer to: a path, text in PEM, hexadecimal or Base64, or bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_function::CallError;
use brine_value::Value;
use brine_x509::{Certificate, Loaded, LoadedKey, PrivateKey, PublicKey, Request, RevocationList, X509Error, pem};

/// The largest file that is read: revocation lists of large authorities have some megabytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// What an argument may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceAccess {
    /// The data itself, or a file of this host.
    Files,
    /// Only the data itself: for requests of other minions, which must not make this one read its files.
    Data,
}

/// Converts an error of `brine-x509` to an execution error.
pub fn failed(error: X509Error) -> CallError {
    CallError::Execution(error.to_string())
}

/// Creates an execution error.
pub fn execution(message: impl Into<String>) -> CallError {
    CallError::Execution(message.into())
}

/// Whether an argument is the path of a file.
pub fn is_file(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() < 4096 && !text.contains('\n') && Path::new(text).is_file())
}

/// Reads a file of at most 16 MiB.
pub fn read_file(path: &Path) -> Result<Vec<u8>, CallError> {
    read_at_most(path, MAX_FILE_BYTES)
}

/// Reads a file of at most this size.
pub fn read_at_most(path: &Path, limit: u64) -> Result<Vec<u8>, CallError> {
    let failed = |error: std::io::Error| execution(format!("reading {} failed: {error}", path.display()));
    let mut bytes = Vec::new();
    let length = File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if length as u64 > limit {
        return Err(execution(format!("reading {} failed: it has more than {limit} bytes", path.display())));
    }
    Ok(bytes)
}

/// Returns the bytes that an argument refers to.
pub fn bytes(value: &Value, access: SourceAccess) -> Result<Vec<u8>, CallError> {
    let unknown = || {
        let forms = "You need to pass an existing file, (PEM|hex|base64)-encoded string or raw bytes.";
        execution(format!("Could not load provided source. {forms}"))
    };
    match value {
        Value::Bytes(bytes) => Ok(bytes.clone()),
        Value::Str(path) if access == SourceAccess::Files && is_file(value) => read_file(Path::new(path)),
        Value::Str(text) => {
            let base64 = |text: &str| {
                let packed = text.split_ascii_whitespace().collect::<String>();
                STANDARD.decode(packed).map_err(|_| unknown())
            };
            if let Some(text) = text.strip_prefix("b64:") {
                return base64(text);
            }
            if pem::is_pem(text.as_bytes()) {
                return Ok(text.clone().into_bytes());
            }
            match unhex(text) {
                Some(bytes) => Ok(bytes),
                None if text.is_empty() => Err(unknown()),
                None => base64(text),
            }
        }
        _ => Err(unknown()),
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.split_ascii_whitespace().collect::<String>();
    if digits.is_empty() || digits.len() % 2 != 0 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

/// Loads a certificate with its encoding and the other contents of its file, such as appended certificates.
pub fn stored_certificate(value: &Value, password: Option<&str>, access: SourceAccess) -> Result<Loaded, CallError> {
    Certificate::load(&bytes(value, access)?, password).map_err(failed)
}

/// Loads a certificate.
pub fn certificate(value: &Value) -> Result<Certificate, CallError> {
    Ok(stored_certificate(value, None, SourceAccess::Files)?.certificate)
}

/// Loads a private key.
pub fn private_key(value: &Value, password: Option<&str>) -> Result<PrivateKey, CallError> {
    Ok(stored_key(value, password)?.key)
}

/// Loads a private key with the encoding in which it was stored.
pub fn stored_key(value: &Value, password: Option<&str>) -> Result<LoadedKey, CallError> {
    PrivateKey::load(&bytes(value, SourceAccess::Files)?, password).map_err(failed)
}

/// Loads a signing request.
pub fn request(value: &Value, access: SourceAccess) -> Result<Request, CallError> {
    Ok(Request::load(&bytes(value, access)?).map_err(failed)?.0)
}

/// Loads a revocation list.
pub fn revocation_list(value: &Value) -> Result<RevocationList, CallError> {
    Ok(RevocationList::load(&bytes(value, SourceAccess::Files)?).map_err(failed)?.0)
}

/// Derives a public key from a public key, a certificate, a private key or a signing request.
pub fn public_key(value: &Value, password: Option<&str>) -> Result<PublicKey, CallError> {
    let bytes = bytes(value, SourceAccess::Files)?;
    if let Ok(key) = PublicKey::load(&bytes) {
        return Ok(key);
    }
    match Certificate::load(&bytes, password) {
        Ok(loaded) => return loaded.certificate.public_key().map_err(failed),
        Err(error @ X509Error::WrongPassword) => return Err(failed(error)),
        Err(_) => {}
    }
    match PrivateKey::load(&bytes, password) {
        Ok(loaded) => return loaded.key.public().map_err(failed),
        Err(X509Error::Unreadable(_) | X509Error::Invalid(_)) => {}
        Err(error) => return Err(failed(error)),
    }
    if let Ok((request, _)) = Request::load(&bytes) {
        return request.public_key().map_err(failed);
    }
    Err(execution("Could not load key as certificate, public key, private key or CSR"))
}

/// Loads a public key; certificates, private keys and requests are rejected.
pub fn public_key_only(value: &Value) -> Result<PublicKey, CallError> {
    PublicKey::load(&bytes(value, SourceAccess::Files)?).map_err(failed)
}
