//! `x509`: certificates, requests and revocation lists from arguments, before they are signed.

use brine_function::CallError;
use brine_value::{Map, Value};
use brine_x509::{
    AllowedIn, Certificate, Entry, Extension, Issuer, LONG_NAMES, Name, Plan, PrivateKey, PublicKey, RequestPlan,
    RevocationPlan, attribute_names, digest, known, named, now, parse_time, serial_number,
};

use super::source::{self, SourceAccess, execution, failed};
use super::{DAY, days_from_now, deprecated};

/// A certificate that can be signed, or compared with one that exists.
pub struct SignableCertificate {
    /// The certificate.
    pub plan: Plan,
    /// The key that signs; `None` if another minion has it.
    pub signing_key: Option<PrivateKey>,
    /// The private key of the certificate, if it was given.
    pub private_key: Option<PrivateKey>,
    /// The certificate of the authority; `None` if this one is self-signed.
    pub signing_cert: Option<Certificate>,
    /// The hash function of the signature.
    pub digest: brine_x509::Digest,
}

impl SignableCertificate {
    /// Signs the certificate.
    pub fn sign(&self) -> Result<Certificate, CallError> {
        let missing = || execution("Creating a certificate locally at least requires a signing private key.");
        self.plan.sign(self.signing_key.as_ref().ok_or_else(missing)?, self.digest).map_err(failed)
    }
}

/// Returns an argument unless it is empty.
pub fn get<'a>(args: &'a Map, name: &str) -> Option<&'a Value> {
    args.get(&Value::from(name)).filter(|value| value.is_truthy())
}

/// Returns an argument as a string unless it is empty.
pub fn text(args: &Map, name: &str) -> Option<String> {
    get(args, name).map(ToString::to_string)
}

/// Replaces long names of attributes and extensions, and the old name of `digest`.
pub fn with_short_names(mut args: Map) -> Map {
    let renamed = LONG_NAMES.iter().chain(&[("algorithm", "digest")]);
    for (long, short) in renamed {
        if let Some(value) = args.shift_remove(&Value::from(*long)) {
            deprecated::renamed(long, short);
            args.insert((*short).into(), value);
        }
    }
    args
}

fn hash(args: &Map) -> Result<brine_x509::Digest, CallError> {
    digest(&text(args, "digest").unwrap_or_else(|| "sha256".into())).map_err(failed)
}

fn time(name: &str, value: &Value) -> Result<i64, CallError> {
    let wrong =
        || execution(format!("{name} is invalid: expected a time such as '2026-11-25 08:00:00', got '{value}'"));
    parse_time(&value.to_string()).ok_or_else(wrong)
}

/// Returns the number of days in an argument.
fn days(args: &Map, name: &str, default: i64) -> Result<i64, CallError> {
    let Some(value) = args.get(&Value::from(name)).filter(|value| !value.is_nil()) else { return Ok(default) };
    let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| execution(format!("{name} is invalid: expected a number of days, got '{value}'")))
}

/// Returns the name of `subject` or of the attributes among the arguments.
fn subject(args: &Map) -> Result<Name, CallError> {
    let subject = match get(args, "subject") {
        Some(subject) => subject.clone(),
        None => Value::Map(args.clone()),
    };
    Name::of(&subject).map_err(failed)
}

/// Builds a certificate. With `remote`, another minion has the key that signs it.
pub fn certificate(args: &Map, access: SourceAccess, remote: bool) -> Result<SignableCertificate, CallError> {
    let passphrase = |name: &str| text(args, name);
    let signing_key = match get(args, "signing_private_key") {
        _ if remote => None,
        // The signing key may be a file even for requests of other minions: they cannot set this argument.
        Some(key) => {
            let password = passphrase("signing_private_key_passphrase");
            Some(source::private_key(key, password.as_deref())?)
        }
        None => return Err(execution("Creating a certificate locally at least requires a signing private key.")),
    };
    let serial = serial_number(args.get(&Value::from("serial_number")).unwrap_or(&Value::Nil)).map_err(failed)?;
    let request = get(args, "csr").map(|request| source::request(request, access)).transpose()?;
    let signing_cert = get(args, "signing_cert").map(source::certificate).transpose()?;
    let mut private_key = None;
    let public = |key: &PrivateKey| key.public().map_err(failed);
    let key = match (&signing_cert, &signing_key) {
        (None, Some(signer)) => {
            let password = passphrase("signing_private_key_passphrase");
            let again = get(args, "signing_private_key").map(|key| source::private_key(key, password.as_deref()));
            private_key = again.transpose()?;
            public(signer)?
        }
        (None, None) => return Err(execution("the signing policy is invalid: it has no signing_cert")),
        (Some(_), _) => {
            if let Some(key) = get(args, "private_key").filter(|_| access == SourceAccess::Files) {
                let key = source::private_key(key, passphrase("private_key_passphrase").as_deref())?;
                public(private_key.insert(key))?
            } else if let Some(key) = get(args, "public_key") {
                PublicKey::load(&source::bytes(key, access)?).map_err(failed)?
            } else if let Some(request) = &request {
                request.public_key().map_err(failed)?
            } else {
                return Err(execution(
                    "This certificate is not self-signed (signing_cert is set) and thus needs public_key, private_key or \
                     csr to derive public key to sign",
                ));
            }
        }
    };
    if let (Some(certificate), Some(signer)) = (&signing_cert, &signing_key)
        && certificate.public_key().map_err(failed)? != public(signer)?
    {
        return Err(execution("Signing private key does not match the certificate's public key"));
    }
    let subject = subject(args)?;
    let not_before = get(args, "not_before").map_or(Ok(now()), |value| time("not_before", value))?;
    let not_after = match get(args, "not_after") {
        Some(value) => time("not_after", value)?,
        None => days_from_now(days(args, "days_valid", 30)?),
    };
    let issuer =
        Issuer { subject: Some(&key), certificate: signing_cert.as_ref(), key: signing_cert.is_none().then_some(&key) };
    let mut extensions = Vec::new();
    for one in known().iter().filter(|one| one.place.is_of_certificates()) {
        match args.get(&Value::from(one.name)) {
            // Null in a signing policy forbids an extension, even if the signing request has it.
            None | Some(Value::Nil) => {}
            Some(value) => extensions.push(Extension::build(one.name, value, &issuer).map_err(failed)?),
        }
    }
    if let Some(request) = &request {
        for one in known().iter().filter(|one| one.place == AllowedIn::Certificate) {
            let is_set = args.contains_key(&Value::from(one.name));
            let requested = request.extensions.iter().find(|extension| extension.oid == one.oid && !is_set);
            extensions.extend(requested.cloned());
        }
    }
    let plan = Plan {
        serial,
        issuer: signing_cert.as_ref().map_or_else(|| subject.clone(), |certificate| certificate.subject.clone()),
        subject,
        not_before,
        not_after,
        key,
        extensions,
    };
    Ok(SignableCertificate { plan, signing_key, private_key, signing_cert, digest: hash(args)? })
}

/// Builds a signing request. Returns it with its private key and the hash function of the signature.
pub fn request(args: &Map) -> Result<(RequestPlan, PrivateKey, brine_x509::Digest), CallError> {
    let key = get(args, "private_key").ok_or_else(|| execution("private_key is missing"))?;
    let key = source::private_key(key, text(args, "private_key_passphrase").as_deref())?;
    let public = key.public().map_err(failed)?;
    let issuer = Issuer { subject: Some(&public), ..Issuer::default() };
    let mut extensions = Vec::new();
    for one in known().iter().filter(|one| one.place == AllowedIn::Certificate) {
        if let Some(value) = args.get(&Value::from(one.name)).filter(|value| !value.is_nil()) {
            extensions.push(Extension::build(one.name, value, &issuer).map_err(failed)?);
        }
    }
    Ok((RequestPlan { subject: subject(args)?, extensions }, key, hash(args)?))
}

/// The inputs of a revocation list.
pub struct CrlInput<'a> {
    /// The key that signs it.
    pub signing_private_key: &'a Value,
    /// Its password.
    pub passphrase: Option<&'a str>,
    /// The certificate of the authority.
    pub signing_cert: &'a Value,
    /// The revoked certificates.
    pub revoked: &'a [Value],
    /// Whether expired certificates are listed.
    pub include_expired: bool,
    /// The days until the next list is due.
    pub days_valid: i64,
    /// The extensions.
    pub extensions: &'a Map,
}

/// Builds a revocation list, and loads the key that signs it.
pub fn revocation_list(args: &CrlInput<'_>) -> Result<(RevocationPlan, PrivateKey), CallError> {
    let key = source::private_key(args.signing_private_key, args.passphrase)?;
    if !args.signing_cert.is_truthy() {
        return Err(execution("signing_cert is missing: a revocation list needs the name of its issuer"));
    }
    let certificate = source::certificate(args.signing_cert)?;
    if certificate.public_key().map_err(failed)? != key.public().map_err(failed)? {
        return Err(execution("Signing private key does not match the certificate's public key"));
    }
    let issuer = Issuer { certificate: Some(&certificate), ..Issuer::default() };
    let mut entries = Vec::new();
    for one in args.revoked {
        entries.extend(entry(&revoked(one), &issuer, args.include_expired)?);
    }
    let mut extensions = Vec::new();
    for (name, value) in args.extensions {
        let name = name.to_string();
        if named(&name).is_some_and(|one| matches!(one.place, AllowedIn::List | AllowedIn::Both)) {
            extensions.push(Extension::build(&name, value, &issuer).map_err(failed)?);
        } else {
            tracing::warn!(extension = name, "ignoring an unknown extension of a revocation list");
        }
    }
    let last_update = now();
    let next_update = last_update.saturating_add(args.days_valid.saturating_mul(DAY));
    let issuer = certificate.subject.clone();
    Ok((RevocationPlan { issuer, last_update, next_update, entries, extensions }, key))
}

/// Returns the description of a revoked certificate. The old form is converted: a list of mappings under the name of
/// the certificate, with `reason` next to the extensions.
fn revoked(value: &Value) -> Map {
    let Some(map) = value.as_map() else { return Map::new() };
    let mut map = match map.values().next() {
        Some(Value::List(parts)) if map.len() == 1 => {
            deprecated::renamed("a name around a revoked certificate", "a list of mappings");
            parts.iter().filter_map(Value::as_map).flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
        }
        _ => map.clone(),
    };
    if let Some(reason) = map.shift_remove(&Value::from("reason")) {
        deprecated::renamed("reason of a revoked certificate", "extensions: {CRLReason: ...}");
        let extensions = map.entry("extensions".into()).or_insert_with(Value::map);
        if let Some(extensions) = extensions.as_map_mut() {
            extensions.insert("CRLReason".into(), reason);
        }
    }
    map
}

fn entry(one: &Map, issuer: &Issuer<'_>, include_expired: bool) -> Result<Option<Entry>, CallError> {
    let mut not_after = get(one, "not_after").map(|value| time("not_after", value)).transpose()?;
    let mut serial = get(one, "serial_number").map(|value| serial_number(value).map_err(failed)).transpose()?;
    if let Some(certificate) = get(one, "certificate") {
        let certificate = source::certificate(certificate)?;
        (serial, not_after) = (Some(certificate.serial), Some(certificate.not_after));
    }
    let serial = serial.ok_or_else(|| execution("Need serial_number or certificate"))?;
    if !include_expired && not_after.is_some_and(|end| now() > end) {
        return Ok(None);
    }
    let date = get(one, "revocation_date").map_or(Ok(now()), |value| time("revocation_date", value))?;
    let mut extensions = Vec::new();
    for (name, value) in one.get(&Value::from("extensions")).and_then(Value::as_map).into_iter().flatten() {
        let name = name.to_string();
        if named(&name).is_some_and(|one| one.place == AllowedIn::Entry) {
            extensions.push(Extension::build(&name, value, issuer).map_err(failed)?);
        } else {
            tracing::warn!(extension = name, "ignoring an unknown extension of a revoked certificate");
        }
    }
    Ok(Some(Entry { serial, date, extensions }))
}

/// Whether arguments contain attributes of a distinguished name, such as `CN`.
pub fn has_attributes(args: &Map) -> bool {
    attribute_names().any(|name| args.contains_key(&Value::from(name)))
}
