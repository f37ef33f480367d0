//! Certificates: parses them, and builds and signs new ones.

use brine_rsa::Digest;
use brine_value::{Map, Value, map};

use crate::der::{self, Item};
use crate::extension::Extension;
use crate::keys::{PrivateKey, PublicKey};
use crate::name::Name;
use crate::pkcs8::{hex, random};
use crate::pkcs12::Container;
use crate::signature::{self, Signed};
use crate::{Result, X509Error, invalid, pem, pretty_hex, show};

const SIGNED_DATA: &str = "1.2.840.113549.1.7.2";
const DATA: &str = "1.2.840.113549.1.7.1";
const KEY_IDENTIFIER: &str = "2.5.29.14";
/// The maximum number of certificates of a container.
const MAX_CHAIN: usize = 1000;

/// A certificate.
#[derive(Clone, Debug)]
pub struct Certificate {
    signed: Signed,
    version: i64,
    /// The serial number, without leading zeros.
    pub serial: Vec<u8>,
    /// The issuer.
    pub issuer: Name,
    /// The subject.
    pub subject: Name,
    /// The start of the validity, in seconds since 1970.
    pub not_before: i64,
    /// The end of the validity, in seconds since 1970.
    pub not_after: i64,
    key: Vec<u8>,
    /// The extensions.
    pub extensions: Vec<Extension>,
}

/// The encoding of a file with certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Encoding {
    Pem,
    Der,
    Pkcs7Pem,
    Pkcs7Der,
    Pkcs12,
}

impl Encoding {
    const ALL: [(&str, Encoding); 5] = [
        ("der", Encoding::Der),
        ("pem", Encoding::Pem),
        ("pkcs7_der", Encoding::Pkcs7Der),
        ("pkcs7_pem", Encoding::Pkcs7Pem),
        ("pkcs12", Encoding::Pkcs12),
    ];

    /// Parses the name of an encoding, such as `pem` or `pkcs7_der`.
    pub fn parse(name: &str) -> Result<Encoding> {
        let encoding = Self::ALL.iter().find(|(other, _)| *other == name).map(|(_, encoding)| *encoding);
        encoding.ok_or_else(|| {
            invalid(format!("Invalid value '{name}' for encoding. Valid: der, pem, pkcs7_der, pkcs7_pem, pkcs12"))
        })
    }

    /// Whether files in this encoding are text.
    pub fn is_text(self) -> bool {
        matches!(self, Encoding::Pem | Encoding::Pkcs7Pem)
    }
}

/// A certificate, and the other content of its file.
pub struct Loaded {
    /// The certificate.
    pub certificate: Certificate,
    /// The encoding of the file.
    pub encoding: Encoding,
    /// The certificates after it.
    pub chain: Vec<Certificate>,
    /// The friendly name in a PKCS#12 container.
    pub name: Option<String>,
}

impl Certificate {
    /// Parses a certificate in DER.
    pub fn from_der(bytes: &[u8]) -> Option<Certificate> {
        let signed = Signed::parse(bytes)?;
        let body = signed.body.clone();
        let mut inside = der::only(&body, der::SEQUENCE)?.inside();
        let version = inside.optional(der::explicit(0)).map_or(Some(0), |item| item.inside().next()?.small())?;
        let serial = inside.expect(der::INTEGER)?.unsigned()?.to_vec();
        inside.expect(der::SEQUENCE)?;
        let issuer = Name::read(&inside.next()?)?;
        let mut validity = inside.expect(der::SEQUENCE)?.inside();
        let (not_before, not_after) = (validity.next()?.time()?, validity.next()?.time()?);
        let subject = Name::read(&inside.next()?)?;
        let key = inside.expect(der::SEQUENCE)?.whole.to_vec();
        inside.optional(der::context(1));
        inside.optional(der::context(2));
        let extensions = match inside.optional(der::explicit(3)) {
            Some(item) => Extension::read_all(&item.inside().expect(der::SEQUENCE)?)?,
            None => Vec::new(),
        };
        Some(Certificate { signed, version, serial, issuer, subject, not_before, not_after, key, extensions })
    }

    /// Parses certificates in any encoding.
    ///
    /// # Errors
    /// The password of a container is wrong, or the bytes are not a certificate.
    pub fn load(bytes: &[u8], password: Option<&str>) -> Result<Loaded> {
        if pem::is_pem(bytes) {
            return from_pem(bytes);
        }
        if let Some(certificate) = Self::from_der(bytes) {
            return Ok(Loaded { certificate, encoding: Encoding::Der, chain: Vec::new(), name: None });
        }
        let unreadable =
            X509Error::Unreadable("Could not deserialize binary data, neither as DER nor PKCS#7, PKCS#12.");
        if let Some(container) = Container::open(bytes, password)? {
            let certificate = container.certificate.and_then(|der| Self::from_der(&der)).ok_or(unreadable)?;
            let chain = container.others.iter().filter_map(|der| Self::from_der(der)).collect();
            return Ok(Loaded { certificate, encoding: Encoding::Pkcs12, chain, name: container.name });
        }
        let (certificate, chain) = from_pkcs7(bytes).ok_or(unreadable)?;
        Ok(Loaded { certificate, encoding: Encoding::Pkcs7Der, chain, name: None })
    }

    /// Returns the certificate in DER.
    pub fn der(&self) -> &[u8] {
        &self.signed.whole
    }

    /// Returns the certificate in PEM.
    pub fn to_pem(&self) -> String {
        pem::encode("CERTIFICATE", self.der())
    }

    /// Encodes the certificate, followed by others. For `pkcs12`, use [`Container`] instead.
    pub fn encode(&self, encoding: Encoding, others: &[Certificate]) -> Vec<u8> {
        let all = || [self].into_iter().chain(others);
        match encoding {
            Encoding::Der | Encoding::Pkcs12 => self.der().to_vec(),
            Encoding::Pem => all().map(Certificate::to_pem).collect::<Vec<_>>().join("\n").into_bytes(),
            Encoding::Pkcs7Der => pkcs7(all()),
            Encoding::Pkcs7Pem => pem::encode("PKCS7", &pkcs7(all())).into_bytes(),
        }
    }

    /// Returns the public key.
    pub fn public_key(&self) -> Result<PublicKey> {
        PublicKey::from_der(&self.key).ok_or_else(|| invalid("the public key is of an unknown algorithm"))
    }

    /// Whether the certificate was signed with this key.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        self.signed.is_signed_by(key)
    }

    /// Returns the hash function of the signature; `None` for Ed25519.
    pub fn digest(&self) -> Option<Digest> {
        self.signed.digest()
    }

    /// Returns the identifier of the key: that of the extension `subjectKeyIdentifier`, or the SHA-1 of the key.
    pub(crate) fn key_identifier(&self) -> Option<Vec<u8>> {
        let stored = self.extensions.iter().find(|one| one.oid == KEY_IDENTIFIER);
        let stored = stored.and_then(|one| der::only(&one.value, der::OCTET_STRING)).map(|item| item.content.to_vec());
        stored.or_else(|| self.public_key().ok().map(|key| key.identifier()))
    }

    /// Returns all details, as `x509.read_certificate` returns them.
    pub fn details(&self) -> Result<Map> {
        let key = self.public_key()?;
        let digest = |digest: Digest| pretty_hex(&digest.of(self.der()));
        Ok(map! {
            "version" => self.version + 1,
            "key_size" => key.size().map(|size| size as i64),
            "key_type" => key.algorithm(),
            "serial_number" => pretty_hex(&self.serial),
            "fingerprints" => map! {
                "sha1" => digest(Digest::Sha1), "sha256" => digest(Digest::Sha256), "md5" => digest(Digest::Md5)
            },
            "subject" => self.subject.attributes(),
            "subject_hash" => pretty_hex(&self.subject.hash()),
            "subject_str" => self.subject.show(),
            "issuer" => self.issuer.attributes(),
            "issuer_hash" => pretty_hex(&self.issuer.hash()),
            "issuer_str" => self.issuer.show(),
            "not_before" => der::show_time(self.not_before),
            "not_after" => der::show_time(self.not_after),
            "public_key" => key.to_pem(),
            "extensions" => show::extensions(&self.extensions, false),
            "signature_algorithm" => self.signed.algorithm(),
        })
    }
}

fn from_pem(bytes: &[u8]) -> Result<Loaded> {
    let blocks = pem::blocks(bytes);
    if let Some(first) = blocks.first().filter(|block| block.label == "PKCS7") {
        let parsed = from_pkcs7(&first.bytes);
        let (certificate, chain) = parsed.ok_or(X509Error::Unreadable("Could not load PEM-encoded PKCS#7 blob"))?;
        return Ok(Loaded { certificate, encoding: Encoding::Pkcs7Pem, chain, name: None });
    }
    let mut all =
        blocks.iter().filter(|block| block.label == "CERTIFICATE").map(|one| Certificate::from_der(&one.bytes));
    let first = all.next().flatten();
    let certificate = first.ok_or(X509Error::Unreadable("Could not load PEM-encoded certificate."))?;
    Ok(Loaded { certificate, encoding: Encoding::Pem, chain: all.flatten().collect(), name: None })
}

/// Encodes certificates as PKCS#7 signed data, without signatures.
fn pkcs7<'a>(all: impl Iterator<Item = &'a Certificate>) -> Vec<u8> {
    let certificates = all.flat_map(|one| one.der().to_vec()).collect::<Vec<_>>();
    let oid = |dotted| der::oid(dotted).unwrap_or_default();
    let data = der::sequence(&[
        &der::number(der::INTEGER, 1),
        &der::item(der::SET, &[]),
        &der::sequence(&[&oid(DATA)]),
        &der::item(der::explicit(0), &certificates),
        &der::item(der::SET, &[]),
    ]);
    der::sequence(&[&oid(SIGNED_DATA), &der::item(der::explicit(0), &data)])
}

fn from_pkcs7(bytes: &[u8]) -> Option<(Certificate, Vec<Certificate>)> {
    let mut inside = der::only(bytes, der::SEQUENCE)?.inside();
    (der::dotted(inside.expect(der::OID)?.content)? == SIGNED_DATA).then_some(())?;
    let mut data = inside.expect(der::explicit(0))?.inside().expect(der::SEQUENCE)?.inside();
    data.expect(der::INTEGER)?;
    data.expect(der::SET)?;
    data.expect(der::SEQUENCE)?;
    let items = data.expect(der::explicit(0))?.inside().all().filter(|items| items.len() <= MAX_CHAIN)?;
    let mut all = items.iter().map(|item: &Item<'_>| Certificate::from_der(item.whole)).collect::<Option<Vec<_>>>()?;
    (!all.is_empty()).then(|| (all.remove(0), all))
}

/// The content of a certificate that is to be signed.
pub struct Plan {
    /// The serial number.
    pub serial: Vec<u8>,
    /// The issuer.
    pub issuer: Name,
    /// The subject.
    pub subject: Name,
    /// The start of the validity, in seconds since 1970.
    pub not_before: i64,
    /// The end of the validity, in seconds since 1970.
    pub not_after: i64,
    /// The public key of the subject.
    pub key: PublicKey,
    /// The extensions.
    pub extensions: Vec<Extension>,
}

impl Plan {
    /// Signs the certificate.
    pub fn sign(&self, key: &PrivateKey, digest: Digest) -> Result<Certificate> {
        let (algorithm, digest) = signature::algorithm(key, digest)?;
        let time =
            |seconds: i64| der::time(seconds).ok_or_else(|| invalid("the validity is invalid: it ends after 9999"));
        if self.not_after < self.not_before {
            return Err(invalid("The not valid after date must be after the not valid before date."));
        }
        let extensions = self.extensions.iter().flat_map(Extension::to_der).collect::<Vec<_>>();
        let extensions = if extensions.is_empty() {
            Vec::new()
        } else {
            der::item(der::explicit(3), &der::item(der::SEQUENCE, &extensions))
        };
        let body = der::sequence(&[
            &der::item(der::explicit(0), &der::number(der::INTEGER, 2)),
            &der::unsigned(&self.serial),
            &algorithm,
            self.issuer.der(),
            &der::sequence(&[&time(self.not_before)?, &time(self.not_after)?]),
            self.subject.der(),
            &self.key.to_der(),
            &extensions,
        ]);
        let whole = Signed::create(&body, &algorithm, key, digest)?;
        Certificate::from_der(&whole).ok_or_else(|| invalid("building the certificate failed"))
    }
}

/// Returns the serial number in an argument, or a random one if the argument is null.
pub fn serial_number(argument: &Value) -> Result<Vec<u8>> {
    let bytes = match argument {
        Value::Nil => {
            let mut bytes = random::<20>();
            // Positive, and of the full length.
            bytes[0] = bytes[0] & 0x7f | 0x40;
            Some(bytes.to_vec())
        }
        Value::Str(text) => hex(&text.replace(':', "")),
        Value::Int(_) | Value::UInt(_) | Value::Big(_) => from_decimal(&argument.to_string()),
        _ => None,
    };
    let bytes = bytes.map(|bytes| bytes.into_iter().skip_while(|byte| *byte == 0).collect::<Vec<_>>());
    match bytes {
        Some(bytes) if bytes.is_empty() => Err(invalid("The serial number should be positive.")),
        Some(bytes) if bytes.len() > 20 || (bytes.len() == 20 && bytes[0] > 0x7f) => {
            Err(invalid("The serial number should not be more than 159 bits."))
        }
        Some(bytes) => Ok(bytes),
        None => Err(invalid(format!("Could not parse serial number {argument}"))),
    }
}

/// Converts a non-negative decimal number to big-endian bytes.
fn from_decimal(text: &str) -> Option<Vec<u8>> {
    if text.len() > 100 {
        return None;
    }
    let mut bytes = Vec::<u8>::new();
    for digit in text.chars() {
        let mut carry = digit.to_digit(10)?;
        for byte in bytes.iter_mut().rev() {
            carry += u32::from(*byte) * 10;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            bytes.insert(0, carry as u8);
        }
    }
    Some(bytes)
}
