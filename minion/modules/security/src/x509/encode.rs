//! `x509`: functions that encode certificates, requests, revocation lists and private keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::Value;
use brine_x509::{Certificate, Container, Encoding, PrivateKey};

use super::source::{self, SourceAccess, execution, failed};

/// Execution functions of `x509` that convert to other encodings.
pub static FUNCTIONS: Functions<Context> =
    registry!("x509", [encode_certificate, encode_crl, encode_csr, encode_private_key]);

/// The options of a PKCS#12 container.
#[derive(Debug, Default)]
pub struct Pkcs12<'a> {
    /// The password; without one nothing is encrypted.
    pub passphrase: Option<&'a str>,
    /// Whether it is encrypted with algorithms that old programs support.
    pub compatible: bool,
    /// The friendly name.
    pub name: Option<&'a str>,
}

/// An encoded structure: text in PEM, or binary.
pub struct Encoded {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether the bytes are text in PEM.
    pub is_text: bool,
}

impl Encoded {
    /// Returns PEM as a string and binary encodings in Base64; with `raw`, the bytes themselves.
    pub fn returned(self, raw: bool) -> Value {
        match (raw, self.is_text) {
            (true, _) => Value::Bytes(self.bytes),
            (false, true) => String::from_utf8_lossy(&self.bytes).into_owned().into(),
            (false, false) => STANDARD.encode(&self.bytes).into(),
        }
    }
}

/// Return a certificate in another encoding, with others appended, or with its private key in a PKCS#12 container.
///
/// CLI Example:
///
///     salt '*' x509.encode_certificate /etc/pki/my.crt pem /etc/pki/ca.crt
#[function]
pub fn encode_certificate(
    _context: &Context,
    /// Certificate: its path, or itself as PEM or DER.
    certificate: Value,
    /// `pem` (default), `der`, `pkcs7_pem`, `pkcs7_der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Certificates that are appended.
    #[default]
    append_certs: Value,
    /// The key for `pkcs12`.
    #[default]
    private_key: Value,
    /// The key for `pkcs12`.
    private_key_passphrase: Option<String>,
    /// Password and name of the container; pkcs12_encryption_compat encrypts it so that old programs read it.
    pkcs12_passphrase: Option<String>,
    /// Whether a container is encrypted so that old programs read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// Password and name of the container; pkcs12_encryption_compat encrypts it so that old programs read it.
    pkcs12_friendlyname: Option<String>,
    /// Return bytes.
    #[default(false)]
    raw: bool,
) -> CallResult {
    let encoding = Encoding::parse(&encoding).map_err(failed)?;
    check_chain(encoding, &append_certs)?;
    if encoding != Encoding::Pkcs12 && private_key.is_truthy() {
        return Err(execution("Embedding private keys is only supported for pkcs12 encoding"));
    }
    let key = if private_key.is_truthy() {
        Some(source::private_key(&private_key, private_key_passphrase.as_deref())?)
    } else {
        None
    };
    let pkcs12 = Pkcs12 {
        passphrase: pkcs12_passphrase.as_deref(),
        compatible: pkcs12_encryption_compat,
        name: pkcs12_friendlyname.as_deref(),
    };
    let certificate = source::certificate(&certificate)?;
    Ok(self::certificate(&certificate, encoding, &chain(&append_certs)?, key, &pkcs12)?.returned(raw))
}

/// Rejects appended certificates in DER, which holds a single certificate.
pub fn check_chain(encoding: Encoding, append_certs: &Value) -> Result<(), CallError> {
    if encoding == Encoding::Der && append_certs.is_truthy() {
        return Err(execution("Cannot encode a certificate chain in DER"));
    }
    Ok(())
}

/// Loads one certificate or a list of them.
pub fn chain(append_certs: &Value) -> Result<Vec<Certificate>, CallError> {
    match append_certs {
        Value::Nil => Ok(Vec::new()),
        Value::List(list) => list.iter().map(source::certificate).collect(),
        one => Ok(vec![source::certificate(one)?]),
    }
}

/// Encodes a certificate and the appended ones.
pub fn certificate(
    certificate: &Certificate,
    encoding: Encoding,
    others: &[Certificate],
    key: Option<PrivateKey>,
    how: &Pkcs12<'_>,
) -> Result<Encoded, CallError> {
    if encoding != Encoding::Pkcs12 {
        return Ok(Encoded { bytes: certificate.encode(encoding, others), is_text: encoding.is_text() });
    }
    let missing = "Creating a PKCS12-encoded certificate without embedded private key is unsupported";
    let container = Container {
        key: Some(key.ok_or_else(|| execution(missing))?),
        certificate: Some(certificate.der().to_vec()),
        others: others.iter().map(|one| one.der().to_vec()).collect(),
        name: how.name.filter(|name| !name.is_empty()).map(str::to_owned),
    };
    Ok(Encoded { bytes: container.to_der(how.passphrase, how.compatible).map_err(failed)?, is_text: false })
}

/// Whether an encoding of a request or a revocation list is PEM. Others than `pem` and `der` are an error.
pub fn is_pem(encoding: &str) -> Result<bool, CallError> {
    match encoding {
        "pem" => Ok(true),
        "der" => Ok(false),
        _ => Err(execution(format!("Invalid value '{encoding}' for encoding. Valid: der, pem"))),
    }
}

/// Return a certificate revocation list in another encoding: `pem` (default) or `der`, which is returned in Base64.
///
/// CLI Example:
///
///     salt '*' x509.encode_crl /etc/pki/my.crl der
#[function]
pub fn encode_crl(
    _context: &Context,
    /// Certificate revocation list: its path, or itself as PEM or DER.
    crl: Value,
    /// Form of the result: `pem`, `der` and others.
    #[default("pem".into())]
    encoding: String,
    /// Whether the bytes are returned instead of base64.
    #[default(false)]
    raw: bool,
) -> CallResult {
    let is_text = is_pem(&encoding)?;
    let list = source::revocation_list(&crl)?;
    let bytes = if is_text { list.to_pem().into_bytes() } else { list.der().to_vec() };
    Ok(Encoded { bytes, is_text }.returned(raw))
}

/// Return a certificate signing request in another encoding: `pem` (default) or `der`, which is returned in Base64.
///
/// CLI Example:
///
///     salt '*' x509.encode_csr /etc/pki/my.csr der
#[function]
pub fn encode_csr(
    _context: &Context,
    /// Certificate signing request: its path, or itself as PEM or DER.
    csr: Value,
    /// Form of the result: `pem`, `der` and others.
    #[default("pem".into())]
    encoding: String,
    /// Whether the bytes are returned instead of base64.
    #[default(false)]
    raw: bool,
) -> CallResult {
    let is_text = is_pem(&encoding)?;
    let request = source::request(&csr, SourceAccess::Files)?;
    let bytes = if is_text { request.to_pem().into_bytes() } else { request.der().to_vec() };
    Ok(Encoded { bytes, is_text }.returned(raw))
}

/// Return a private key in another encoding.
///
/// CLI Example:
///
///     salt '*' x509.encode_private_key /etc/pki/my.key der
#[function]
pub fn encode_private_key(
    _context: &Context,
    /// Private key: its path, or itself as PEM or DER.
    private_key: Value,
    /// `pem` (default), `der` or `pkcs12`; the last two are returned in Base64.
    #[default("pem".into())]
    encoding: String,
    /// Encrypts the result.
    passphrase: Option<String>,
    /// Decrypts the key.
    private_key_passphrase: Option<String>,
    /// Encrypt so that old programs read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// Return bytes.
    #[default(false)]
    raw: bool,
) -> CallResult {
    check_key_encoding(&encoding)?;
    let key = source::private_key(&private_key, private_key_passphrase.as_deref())?;
    Ok(self::private_key(key, &encoding, passphrase.as_deref(), pkcs12_encryption_compat)?.returned(raw))
}

/// Rejects encodings that private keys do not support.
pub fn check_key_encoding(encoding: &str) -> Result<(), CallError> {
    if ["der", "pem", "pkcs12"].contains(&encoding) {
        return Ok(());
    }
    Err(execution(format!("Invalid value '{encoding}' for encoding. Valid: der, pem, pkcs12")))
}

/// Encodes a private key.
pub fn private_key(
    key: PrivateKey,
    encoding: &str,
    passphrase: Option<&str>,
    compatible: bool,
) -> Result<Encoded, CallError> {
    let bytes = match encoding {
        "pem" => key.to_pem(passphrase).map(String::into_bytes),
        "der" => key.to_der(passphrase),
        _ => Container { key: Some(key), ..Container::default() }.to_der(passphrase, compatible),
    };
    Ok(Encoded { bytes: bytes.map_err(failed)?, is_text: encoding == "pem" })
}
