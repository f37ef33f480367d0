//! `x509.certificate_managed`.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, function};
use brine_value::{Map, Value};
use brine_x509::{Certificate, Encoding, Loaded, X509Error, changes as extension_changes, serial_number};

use super::{Content, FileArgs, Managed};
use crate::x509::build::{self, SignableCertificate, get, with_short_names};
use crate::x509::create::{CERTIFICATE_DAYS, new_certificate};
use crate::x509::deprecated::remove_without_effect;
use crate::x509::encode::{self, Pkcs12};
use crate::x509::source::{SourceAccess, execution, failed};
use crate::x509::{days_from_now, policy};

/// The default number of days before expiry at which a certificate is renewed, as in Salt before 3009.
const DAYS_REMAINING: i64 = 90;
/// Changes that need no new signature.
const FORMAT_CHANGES: [&str; 3] = ["additional_certs", "encoding", "pkcs12_friendlyname"];

/// The arguments of `x509.certificate_managed`.
#[derive(Args)]
pub struct CertificateArgs {
    /// Path of the certificate.
    name: String,
    /// Days before its expiry at which it is renewed.
    #[default(DAYS_REMAINING)]
    days_remaining: i64,
    /// Minion that signs the certificate, by one of its signing policies.
    ca_server: Option<String>,
    /// Signing policy, whose values take precedence over other arguments.
    signing_policy: Option<String>,
    /// `pem`, `der`, `pkcs7_pem`, `pkcs7_der` or `pkcs12`.
    #[default("pem".into())]
    encoding: String,
    /// Certificates that are appended, such as those of the authorities.
    #[default]
    append_certs: Value,
    /// Password of a `pkcs12` container.
    pkcs12_passphrase: Option<String>,
    /// Whether a `pkcs12` container is encrypted so that old programs read it.
    #[default(false)]
    pkcs12_encryption_compat: bool,
    /// Name of the certificate in a `pkcs12` container.
    pkcs12_friendlyname: Option<String>,
    #[args]
    file: FileArgs,
    /// Further arguments of `x509.create_certificate`.
    #[keywords]
    kwargs: Map,
}

/// Ensure that a file has a certificate as described, and renew it before it expires.
///
/// Changes of the arguments, the authority, the key and the signing policy are detected, and the certificate is issued
/// again. A `pkcs12` container has the private key, so its mode is 0600 by default.
///
/// SLS Example:
///
///     /etc/pki/web.crt:
///       x509.certificate_managed:
///         - ca_server: ca1
///         - signing_policy: web
///         - private_key: /etc/pki/web.key
///         - CN: web1.example.com
///         - subjectAltName: DNS:web1.example.com
///         - days_valid: 90
///         - days_remaining: 30
///         - require:
///           - x509: /etc/pki/web.key
#[function]
pub fn certificate_managed(context: &StateContext, #[args] mut args: CertificateArgs) -> CallResult {
    if args.encoding == "pkcs12" && !args.file.mode.is_truthy() {
        args.file.mode = "0600".into();
    }
    let managed = Managed { context, name: &args.name, file: &args.file, noun: "certificate" };
    managed.result(state(&managed, &args))
}

fn state(managed: &Managed<'_>, args: &CertificateArgs) -> Result<StateReturn, CallError> {
    let encoding = Encoding::parse(&args.encoding).map_err(failed)?;
    encode::check_chain(encoding, &args.append_certs)?;
    let mut kwargs = with_short_names(remove_without_effect(args.kwargs.clone()));
    if get(&kwargs, "days_valid").is_none() && get(&kwargs, "not_after").is_none() {
        kwargs.insert("days_valid".into(), CERTIFICATE_DAYS.into());
    }
    let before = match managed.inspect()? {
        Ok(before) => before,
        Err(ended) => return Ok(ended),
    };
    let load = |bytes: &[u8]| match Certificate::load(bytes, args.pkcs12_passphrase.as_deref()) {
        Err(X509Error::WrongPassword) => Ok(None),
        loaded => loaded.map(Some),
    };
    let (changes, current) = managed.compared(&before, load, |loaded, changes| {
        let Some(loaded) = loaded else {
            changes.insert("pkcs12_passphrase".into(), true.into());
            return Ok(None);
        };
        let desired = wanted(managed.context, args, &kwargs)?;
        changes.extend(compared(&loaded, &desired, args, &kwargs, encoding)?);
        Ok(Some((loaded.certificate, desired)))
    })?;
    let current = current.flatten();
    let only_form = changes.keys().all(|key| FORMAT_CHANGES.iter().any(|form| key.as_str() == Some(form)));
    let exists = current.is_some();
    managed.finish(before, changes, exists, move || {
        let context = &managed.context.call;
        let (certificate, key) = if let Some((certificate, built)) = current.filter(|_| only_form) {
            (certificate, built.private_key)
        } else {
            let (server, policy) = (args.ca_server.as_deref(), args.signing_policy.as_deref());
            new_certificate(context, server, policy, kwargs, encoding)?
        };
        let pkcs12 = Pkcs12 {
            passphrase: args.pkcs12_passphrase.as_deref(),
            compatible: args.pkcs12_encryption_compat,
            name: args.pkcs12_friendlyname.as_deref(),
        };
        let encoded = encode::certificate(&certificate, encoding, &encode::chain(&args.append_certs)?, key, &pkcs12)?;
        Ok(Content { bytes: encoded.bytes, is_text: encoded.is_text })
    })
}

/// Builds the certificate that would be issued.
fn wanted(context: &StateContext, args: &CertificateArgs, kwargs: &Map) -> Result<SignableCertificate, CallError> {
    let server = args.ca_server.as_deref();
    if server.is_some() && args.signing_policy.is_none() {
        return Err(execution("signing_policy must be specified to request a certificate from a remote ca_server"));
    }
    let policy = policy::resolved(&context.call, args.signing_policy.as_deref(), server)?;
    build::certificate(&policy::merged(policy, kwargs.clone()), SourceAccess::Files, server.is_some())
}

/// Returns the differences, as Salt reports them.
fn compared(
    current: &Loaded,
    built: &SignableCertificate,
    args: &CertificateArgs,
    kwargs: &Map,
    encoding: Encoding,
) -> Result<Map, CallError> {
    let mut changes = Map::new();
    let certificate = &current.certificate;
    if current.encoding != encoding {
        changes.insert("encoding".into(), args.encoding.as_str().into());
    } else if encoding == Encoding::Pkcs12 {
        let name = args.pkcs12_friendlyname.as_deref().filter(|name| !name.is_empty());
        if current.name.as_deref() != name {
            changes.insert("pkcs12_friendlyname".into(), args.pkcs12_friendlyname.clone().into());
        }
    }
    if certificate.not_after < days_from_now(args.days_remaining) {
        changes.insert("expiration".into(), true.into());
    }
    let others = encode::chain(&args.append_certs)?;
    if !current.chain.iter().map(Certificate::der).eq(others.iter().map(Certificate::der)) {
        changes.insert("additional_certs".into(), true.into());
    }
    if certificate.digest().is_some_and(|digest| digest != built.digest) {
        changes.insert("digest".into(), build::text(kwargs, "digest").unwrap_or_else(|| "sha256".into()).into());
    }
    if let Some(serial) = get(kwargs, "serial_number")
        && serial_number(serial).map_err(failed)? != certificate.serial
    {
        changes.insert("serial_number".into(), serial.clone());
    }
    if certificate.public_key().map_err(failed)? != built.plan.key {
        changes.insert("private_key".into(), true.into());
    }
    if let Some(signer) = &built.signing_cert
        && !certificate.is_signed_by(&signer.public_key().map_err(failed)?)
    {
        changes.insert("signing_private_key".into(), true.into());
    }
    if certificate.subject != built.plan.subject {
        changes.insert("subject_name".into(), built.plan.subject.show().into());
    }
    if certificate.issuer != built.plan.issuer {
        changes.insert("issuer_name".into(), built.plan.issuer.show().into());
    }
    if let Some(differences) = extension_changes(&certificate.extensions, &built.plan.extensions) {
        changes.insert("extensions".into(), differences.into());
    }
    Ok(changes)
}
