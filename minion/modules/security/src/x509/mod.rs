//! `x509`: certificates, signing requests, revocation lists and private keys.
//!
//! | file | owns |
//! |---|---|
//! | `mod.rs` | functions that read and verify |
//! | `create.rs`, `encode.rs` | functions that create and encode |
//! | `pems.rs` | functions on text in PEM |
//! | `build.rs` | certificates, requests and lists from arguments, for functions and states |
//! | `policy.rs` | signing policies, and certificates that another minion signs |
//! | `source.rs` | loads the keys and certificates that arguments refer to |
//! | `state/` | the states |
//!
//! The formats are those of the crate `brine-x509`.

mod build;
mod create;
mod deprecated;
mod encode;
mod pems;
mod policy;
pub(crate) mod source;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use std::path::Path;

use brine_context::{Context, Module};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};
use brine_x509::now;

use source::{SourceAccess, execution, failed, is_file};

pub(super) static MODULE: Module = Module {
    functions: &[&FUNCTIONS, &create::FUNCTIONS, &encode::FUNCTIONS, &pems::FUNCTIONS, &policy::FUNCTIONS],
    states: &[&state::FUNCTIONS],
    ..Module::EMPTY
};

/// Execution functions of `x509` that read and verify.
pub static FUNCTIONS: Functions<Context> = registry!(
    "x509",
    [
        expires,
        expired,
        will_expire,
        read_certificate,
        read_certificates,
        read_crl,
        read_csr,
        get_private_key_size,
        get_public_key,
        verify_crl,
        verify_private_key,
        verify_signature
    ]
);

const DAY: i64 = 86_400;

/// Returns the time in this many days, in Unix seconds.
fn days_from_now(days: i64) -> i64 {
    now().saturating_add(days.saturating_mul(DAY))
}

/// Return whether a certificate has expired, or will have within `days`.
///
/// CLI Example:
///
///     salt '*' x509.expires /etc/pki/my.crt days=7
#[function]
pub fn expires(
    _context: &Context,
    /// Certificate: its path, or itself as PEM or DER.
    certificate: Value,
    /// Number of days.
    #[default(0)]
    days: i64,
) -> CallResult {
    Ok((source::certificate(&certificate)?.not_after <= days_from_now(days)).into())
}

/// Return whether a certificate has expired, with its path and common name.
///
/// CLI Example:
///
///     salt '*' x509.expired /etc/pki/mycert.crt
#[function]
pub fn expired(
    _context: &Context,
    /// Certificate: its path, or itself as PEM or DER.
    certificate: Value,
) -> CallResult {
    expiry(&certificate, Map::new(), "expired", 0)
}

/// Return whether a certificate will expire within `days`, with its path and common name.
///
/// CLI Example:
///
///     salt '*' x509.will_expire /etc/pki/mycert.crt days=30
#[function]
pub fn will_expire(
    _context: &Context,
    /// Certificate: its path, or itself as PEM or DER.
    certificate: Value,
    /// Number of days.
    days: i64,
) -> CallResult {
    expiry(&certificate, map! {"check_days" => days}, "will_expire", days)
}

fn expiry(certificate: &Value, mut report: Map, field: &str, days: i64) -> CallResult {
    if is_file(certificate) {
        report.insert("path".into(), certificate.clone());
    }
    let certificate = source::certificate(certificate)?;
    if let Some(name) = certificate.subject.get("CN") {
        report.insert("cn".into(), name.into());
    }
    report.insert(field.into(), (certificate.not_after <= days_from_now(days)).into());
    Ok(report.into())
}

/// Return the details of a certificate.
///
/// CLI Example:
///
///     salt '*' x509.read_certificate /etc/pki/mycert.crt
#[function]
pub fn read_certificate(
    _context: &Context,
    /// Certificate: its path, or itself as PEM or DER.
    certificate: Value,
) -> CallResult {
    Ok(source::certificate(&certificate)?.details().map_err(failed)?.into())
}

/// Return the details of all certificates whose paths match a glob. Files without a certificate are left out.
///
/// CLI Example:
///
///     salt '*' x509.read_certificates '/etc/pki/*.crt'
#[function]
pub fn read_certificates(
    _context: &Context,
    /// Glob of the paths.
    glob_path: String,
) -> CallResult {
    let read = |path: &Path| {
        let loaded = source::stored_certificate(&path.display().to_string().into(), None, SourceAccess::Files).ok()?;
        Some(Value::from(loaded.certificate.details().ok()?))
    };
    Ok(pems::each(&glob_path, read)?.into())
}

/// Return the details of a certificate revocation list.
///
/// CLI Example:
///
///     salt '*' x509.read_crl /etc/pki/my.crl
#[function]
pub fn read_crl(
    _context: &Context,
    /// Certificate revocation list: its path, or itself as PEM or DER.
    crl: Value,
) -> CallResult {
    Ok(source::revocation_list(&crl)?.details().into())
}

/// Return the details of a certificate signing request.
///
/// CLI Example:
///
///     salt '*' x509.read_csr /etc/pki/mycert.csr
#[function]
pub fn read_csr(
    _context: &Context,
    /// Certificate signing request: its path, or itself as PEM or DER.
    csr: Value,
) -> CallResult {
    Ok(source::request(&csr, SourceAccess::Files)?.details().map_err(failed)?.into())
}

/// Return the size of a private key in bits; None for Ed25519.
///
/// CLI Example:
///
///     salt '*' x509.get_private_key_size /etc/pki/my.key
#[function]
pub fn get_private_key_size(
    _context: &Context,
    /// Private key: its path, or itself as PEM or DER.
    private_key: Value,
    /// Passphrase of the private key.
    passphrase: Option<String>,
) -> CallResult {
    Ok(source::private_key(&private_key, passphrase.as_deref())?.size().map(|size| size as i64).into())
}

/// Return the public key of a public key, certificate, private key or signing request, in PEM.
///
/// CLI Example:
///
///     salt '*' x509.get_public_key /etc/pki/my.key
#[function]
pub fn get_public_key(
    _context: &Context,
    /// Private key or certificate: its path, or itself as PEM or DER.
    key: Value,
    /// Passphrase of the private key.
    passphrase: Option<String>,
    /// Ignored, for states written for Salt 2019.
    #[default]
    #[allow(non_snake_case)]
    asObj: Value,
) -> CallResult {
    deprecated::all_without_effect(&[("asObj", &asObj)]);
    Ok(source::public_key(&key, passphrase.as_deref())?.to_pem().into())
}

/// Return whether a revocation list was signed with the key of a certificate.
///
/// CLI Example:
///
///     salt '*' x509.verify_crl /etc/pki/my.crl /etc/pki/my.crt
#[function]
pub fn verify_crl(
    _context: &Context,
    /// Certificate revocation list: its path, or itself as PEM or DER.
    crl: Value,
    /// Certificate of the authority: its path, or itself as PEM or DER.
    cert: Value,
) -> CallResult {
    Ok(source::revocation_list(&crl)?.is_signed_by(&source::public_key(&cert, None)?).into())
}

/// Return whether a private key belongs to a public key, certificate or signing request.
///
/// CLI Example:
///
///     salt '*' x509.verify_private_key /etc/pki/my.key /etc/pki/my.crt
#[function]
pub fn verify_private_key(
    _context: &Context,
    /// Private key: its path, or itself as PEM or DER.
    private_key: Value,
    /// Public key: its path, or itself as PEM.
    public_key: Value,
    /// Passphrase of the private key.
    passphrase: Option<String>,
) -> CallResult {
    let private = source::private_key(&private_key, passphrase.as_deref())?;
    Ok((private.public().map_err(failed)? == source::public_key(&public_key, None)?).into())
}

/// Return whether a certificate was signed with a key; without one, whether it is self-signed.
///
/// CLI Example:
///
///     salt '*' x509.verify_signature /etc/pki/my.crt /etc/pki/ca.crt
#[function]
pub fn verify_signature(
    _context: &Context,
    /// Certificate: its path, or itself as PEM or DER.
    certificate: Value,
    /// Public key that made the signature.
    #[default]
    signing_pub_key: Value,
    /// Passphrase of the key.
    signing_pub_key_passphrase: Option<String>,
) -> CallResult {
    let signer = if signing_pub_key.is_truthy() { &signing_pub_key } else { &certificate };
    let key = source::public_key(signer, signing_pub_key_passphrase.as_deref())?;
    Ok(source::certificate(&certificate)?.is_signed_by(&key).into())
}

/// Rejects unknown keyword arguments.
fn reject_unknown_kwargs(kwargs: &Map) -> Result<(), brine_function::CallError> {
    let unknown = kwargs.keys().map(ToString::to_string).filter(|name| !name.starts_with('_'));
    let unknown = unknown.map(|name| format!("'{name}'")).collect::<Vec<_>>();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(execution(format!("Unrecognized keyword arguments: [{}]", unknown.join(", "))))
}
