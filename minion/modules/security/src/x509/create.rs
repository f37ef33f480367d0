//! `x509`: functions that create certificates, requests, revocation lists and private keys.

use std::path::Path;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_value::{Map, Value};
use brine_x509::{Certificate, Encoding, PrivateKey, digest};

use super::build::{self, CrlInput, get, with_short_names};
use super::deprecated::{self, remove_without_effect};
use super::encode::{self, Encoded, Pkcs12};
use super::source::{self, SourceAccess, execution, failed};
use super::{policy, reject_unknown_kwargs};

/// Execution functions of `x509` that create certificates, requests, revocation lists and keys.
pub static FUNCTIONS: Functions<Context> =
    registry!("x509", [create_certificate, create_crl, create_csr, create_private_key]);

/// The default validity of a certificate in days, as in Salt before 3009.
pub const CERTIFICATE_DAYS: i64 = 365;
/// The default validity of a revocation list in days, as in Salt before 3009.
pub const CRL_DAYS: i64 = 100;

/// The arguments of `x509.create_certificate`.
#[derive(Args)]
pub struct CertificateArgs {
    /// Minion that signs the certificate, by one of its signing policies.
    pub ca_server: Option<String>,
    /// Signing policy, whose values take precedence over other arguments.
    pub signing_policy: Option<String>,
    /// `pem`, `der`, `pkcs7_pem`, `pkcs7_der` or `pkcs12`; all but those in PEM are returned in Base64.
    #[default("pem".into())]
    pub encoding: String,
    /// Certificates that are appended, such as those of the authorities.
    #[default]
    pub append_certs: Value,
    /// Password of a `pkcs12` container.
    pub pkcs12_passphrase: Option<String>,
    /// Whether a `pkcs12` container is encrypted so that old programs read it.
    #[default(false)]
    pub pkcs12_encryption_compat: bool,
    /// Name of the certificate in a `pkcs12` container.
    pub pkcs12_friendlyname: Option<String>,
    /// File to which the certificate is written, instead of being returned.
    pub path: Option<String>,
    /// Whether an existing file is replaced.
    #[default(true)]
    pub overwrite: bool,
    /// Whether bytes are returned instead of text.
    #[default(false)]
    pub raw: bool,
    /// signing_private_key, signing_private_key_passphrase and signing_cert of the authority; private_key,
    /// private_key_passphrase, public_key or csr of the subject; digest, serial_number, not_before, not_after, days_valid;
    /// subject, or attributes of it such as CN; copypath, prepend_cn; and the extensions: basicConstraints, keyUsage,
    /// extendedKeyUsage, subjectKeyIdentifier, authorityKeyIdentifier, subjectAltName, issuerAltName,
    /// authorityInfoAccess, crlDistributionPoints, certificatePolicies, policyConstraints, inhibitAnyPolicy,
    /// nameConstraints, noCheck, tlsfeature.
    #[keywords]
    pub kwargs: Map,
}

/// Create a certificate, and return it or write it to a file. Without `signing_cert` it is self-signed.
///
/// CLI Example:
///
///     salt '*' x509.create_certificate signing_private_key='/etc/pki/myca.key' csr='/etc/pki/my.csr'
#[function]
pub fn create_certificate(context: &Context, #[args] args: CertificateArgs) -> CallResult {
    let encoding = Encoding::parse(&args.encoding).map_err(failed)?;
    encode::check_chain(encoding, &args.append_certs)?;
    if let Some(path) = args.path.as_deref().filter(|path| !args.overwrite && Path::new(path).is_file()) {
        return Ok(format!("The file at {path} exists and overwrite was set to false").into());
    }
    let certificate =
        new_certificate(context, args.ca_server.as_deref(), args.signing_policy.as_deref(), args.kwargs, encoding)?;
    let pkcs12 = Pkcs12 {
        passphrase: args.pkcs12_passphrase.as_deref(),
        compatible: args.pkcs12_encryption_compat,
        name: args.pkcs12_friendlyname.as_deref(),
    };
    let others = encode::chain(&args.append_certs)?;
    let encoded = encode::certificate(&certificate.0, encoding, &others, certificate.1, &pkcs12)?;
    // A PKCS#12 container includes the private key.
    let mode = if encoding == Encoding::Pkcs12 { 0o600 } else { 0o644 };
    write(encoded, args.path.as_deref(), args.raw, mode, "Certificate")
}

/// Issues a certificate on this minion, or requests it from `ca_server`. Returns it with its private key, if one was
/// given.
pub fn new_certificate(
    context: &Context,
    ca_server: Option<&str>,
    signing_policy: Option<&str>,
    kwargs: Map,
    encoding: Encoding,
) -> Result<(Certificate, Option<PrivateKey>), CallError> {
    let mut kwargs = remove_without_effect(with_short_names(kwargs));
    if get(&kwargs, "days_valid").is_none() && get(&kwargs, "not_after").is_none() {
        kwargs.insert("days_valid".into(), CERTIFICATE_DAYS.into());
    }
    if let Some(name) = build::text(&kwargs, "digest") {
        digest(&name).map_err(failed)?;
    }
    if let Some(server) = ca_server {
        let missing = "signing_policy must be specified to request a certificate from a remote ca_server";
        let policy = signing_policy.ok_or_else(|| execution(missing))?;
        let key = match get(&kwargs, "private_key") {
            Some(key) => Some(source::private_key(key, build::text(&kwargs, "private_key_passphrase").as_deref())?),
            None => None,
        };
        let certificate = policy::request(context, server, policy, kwargs.clone())?;
        policy::copy(&certificate, &kwargs)?;
        return Ok((certificate, key));
    }
    let args = policy::merged(policy::resolved(context, signing_policy, None)?, kwargs);
    if encoding == Encoding::Pkcs12 && get(&args, "private_key").is_none() && get(&args, "signing_cert").is_some() {
        return Err(execution("Creating a PKCS12-encoded certificate without embedded private key is unsupported"));
    }
    let built = build::certificate(&args, SourceAccess::Files, false)?;
    let certificate = built.sign()?;
    policy::copy(&certificate, &args)?;
    Ok((certificate, built.private_key))
}

/// Returns the encoded structure, or writes it to a file.
fn write(encoded: Encoded, path: Option<&str>, raw: bool, mode: u32, what: &str) -> CallResult {
    let Some(path) = path else { return Ok(encoded.returned(raw)) };
    // PEM files get mode 0600, as with `write_pem`.
    let mode = if encoded.is_text { 0o600 } else { mode };
    files::rewrite(path, &encoded.bytes, mode).map_err(CallError::execution)?;
    Ok(if encoded.is_text { format!("PEM written to {path}") } else { format!("{what} written to {path}") }.into())
}

/// The arguments of `x509.create_crl`.
#[derive(Args)]
pub struct CrlArgs {
    /// Private key of the authority.
    pub signing_private_key: Value,
    /// The revoked certificates: mappings with `certificate` or `serial_number`, and with `revocation_date`, `not_after`
    /// and `extensions` (`CRLReason`, `invalidityDate`, `certificateIssuer`).
    pub revoked: Vec<Value>,
    /// Certificate of the authority.
    #[default]
    pub signing_cert: Value,
    /// Password of the key.
    pub signing_private_key_passphrase: Option<String>,
    /// Whether certificates that have expired are listed.
    #[default(false)]
    pub include_expired: bool,
    /// Days until the next list is due.
    #[default(CRL_DAYS)]
    pub days_valid: i64,
    /// Hash function of the signature.
    #[default("sha256".into())]
    pub digest: String,
    /// `pem`, or `der`, which is returned in Base64.
    #[default("pem".into())]
    pub encoding: String,
    /// Extensions: `authorityKeyIdentifier`, `authorityInfoAccess`, `cRLNumber`, `deltaCRLIndicator`, `freshestCRL`,
    /// `issuerAltName` and `issuingDistributionPoint`.
    pub extensions: Option<Map>,
    /// File to which the list is written, instead of being returned.
    pub path: Option<String>,
    /// Whether bytes are returned instead of text.
    #[default(false)]
    pub raw: bool,
    /// Arguments of old releases, which have no effect.
    #[keywords]
    pub kwargs: Map,
}

/// Create a certificate revocation list, and return it or write it to a file.
///
/// CLI Example:
///
///     salt '*' x509.create_crl signing_cert=/etc/pki/ca.crt signing_private_key=/etc/pki/ca.key \
///         revoked="[{'certificate': '/etc/pki/certs/www1.crt', 'revocation_date': '2015-03-01 00:00:00'}]"
#[function]
pub fn create_crl(_context: &Context, #[args] args: CrlArgs) -> CallResult {
    reject_unknown_kwargs(&remove_without_effect(args.kwargs))?;
    let is_text = encode::is_pem(&args.encoding)?;
    let digest = digest(&args.digest).map_err(failed)?;
    let (plan, key) = build::revocation_list(&CrlInput {
        signing_private_key: &args.signing_private_key,
        passphrase: args.signing_private_key_passphrase.as_deref(),
        signing_cert: &args.signing_cert,
        revoked: &args.revoked,
        include_expired: args.include_expired,
        days_valid: args.days_valid,
        extensions: &args.extensions.unwrap_or_default(),
    })?;
    let list = plan.sign(&key, digest).map_err(failed)?;
    let bytes = if is_text { list.to_pem().into_bytes() } else { list.der().to_vec() };
    write(Encoded { bytes, is_text }, args.path.as_deref(), args.raw, 0o644, "CRL")
}

/// Create a certificate signing request, and return it or write it to a file.
///
/// private_key, private_key_passphrase: the key of the subject. digest: hash function of the signature (sha256). encoding:
/// `pem` or `der`. path: the file. raw: return bytes. Further arguments are subject, or attributes of it such as CN, and
/// the extensions of `x509.create_certificate` that requests can have.
///
/// CLI Example:
///
///     salt '*' x509.create_csr private_key='/etc/pki/myca.key' CN='My Cert'
#[function]
pub fn create_csr(
    _context: &Context,
    /// Private key: its path, or itself as PEM or DER.
    private_key: Value,
    /// Passphrase of the private key.
    private_key_passphrase: Option<String>,
    /// Hash of the signature, such as `sha256`.
    #[default("sha256".into())]
    digest: String,
    /// Form of the result: `pem`, `der` and others.
    #[default("pem".into())]
    encoding: String,
    /// Path of the file.
    path: Option<String>,
    /// Whether the bytes are returned instead of base64.
    #[default(false)]
    raw: bool,
    /// Fields of the subject by their short names (`CN`, `O`, ...), `subject`, and extensions such as
    /// `basicConstraints`, `keyUsage` and `subjectAltName`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let is_text = encode::is_pem(&encoding)?;
    let mut args = remove_without_effect(kwargs);
    args.entry("digest".into()).or_insert(digest.into());
    args.extend([
        (Value::from("private_key"), private_key),
        ("private_key_passphrase".into(), private_key_passphrase.into()),
    ]);
    let (plan, key, digest) = build::request(&with_short_names(args))?;
    let request = plan.sign(&key, digest).map_err(failed)?;
    let bytes = if is_text { request.to_pem().into_bytes() } else { request.der().to_vec() };
    write(Encoded { bytes, is_text }, path.as_deref(), raw, 0o644, "CSR")
}

/// Create a private key, and return it or write it to a file with mode 0600.
///
/// CLI Example:
///
///     salt '*' x509.create_private_key algo=ec keysize=384
#[function]
pub fn create_private_key(
    _context: &Context,
    /// `rsa` (default), `ec` or `ed25519`.
    #[default("rsa".into())]
    algo: String,
    /// 2048, 3072 or 4096 bits for RSA; 256, 384 or 521 for elliptic curves.
    keysize: Option<i64>,
    /// Encrypts the key.
    passphrase: Option<String>,
    /// `pem`, `der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Encrypt so that old programs read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// The file.
    path: Option<String>,
    /// Return bytes.
    #[default(false)]
    raw: bool,
    /// `bits`, an old name of `keysize`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut kwargs = remove_without_effect(kwargs);
    let bits = kwargs.shift_remove(&Value::from("bits")).and_then(|bits| bits.as_i64());
    if bits.is_some() {
        deprecated::renamed("bits", "keysize");
    }
    reject_unknown_kwargs(&kwargs)?;
    encode::check_key_encoding(&encoding)?;
    let key = PrivateKey::generate(&algo, bits.or(keysize)).map_err(failed)?;
    let encoded = encode::private_key(key, &encoding, passphrase.as_deref(), pkcs12_encryption_compat)?;
    write(encoded, path.as_deref(), raw, 0o600, "Private key")
}
