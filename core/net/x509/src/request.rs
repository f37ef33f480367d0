//! Certificate signing requests.

use brine_rsa::Digest;
use brine_value::{Map, map};

use crate::der;
use crate::extension::Extension;
use crate::keys::{PrivateKey, PublicKey};
use crate::name::Name;
use crate::signature::{self, Signed};
use crate::{Result, X509Error, invalid, pem, pretty_hex, show};

const EXTENSIONS: &str = "1.2.840.113549.1.9.14";
const LABELS: [&str; 2] = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"];

/// A signing request.
#[derive(Clone, Debug)]
pub struct Request {
    signed: Signed,
    /// The subject.
    pub subject: Name,
    key: Vec<u8>,
    /// The requested extensions.
    pub extensions: Vec<Extension>,
}

impl Request {
    /// Parses a request in DER.
    pub fn from_der(bytes: &[u8]) -> Option<Request> {
        let signed = Signed::parse(bytes)?;
        let body = signed.body.clone();
        let mut inside = der::only(&body, der::SEQUENCE)?.inside();
        (inside.expect(der::INTEGER)?.small() == Some(0)).then_some(())?;
        let subject = Name::read(&inside.next()?)?;
        let key = inside.expect(der::SEQUENCE)?.whole.to_vec();
        let mut extensions = Vec::new();
        if let Some(attributes) = inside.optional(der::explicit(0)) {
            for one in attributes.inside().all()? {
                let mut inside = one.inside();
                if der::dotted(inside.expect(der::OID)?.content)? == EXTENSIONS {
                    let sequence = inside.expect(der::SET)?.inside().expect(der::SEQUENCE)?;
                    extensions = Extension::read_all(&sequence)?;
                }
            }
        }
        Some(Request { signed, subject, key, extensions })
    }

    /// Parses a request in PEM or DER. Also returns whether it is PEM.
    pub fn load(bytes: &[u8]) -> Result<(Request, bool)> {
        if pem::is_pem(bytes) {
            let request = pem::first(bytes, &LABELS).and_then(|der| Self::from_der(&der));
            let unreadable = X509Error::Unreadable("Could not load PEM-encoded certificate signing request.");
            return request.map(|request| (request, true)).ok_or(unreadable);
        }
        let unreadable = X509Error::Unreadable("Could not load DER-encoded certificate signing request.");
        Self::from_der(bytes).map(|request| (request, false)).ok_or(unreadable)
    }

    /// Returns the request in DER.
    pub fn der(&self) -> &[u8] {
        &self.signed.whole
    }

    /// Returns the request in PEM.
    pub fn to_pem(&self) -> String {
        pem::encode(LABELS[0], self.der())
    }

    /// Returns the public key.
    pub fn public_key(&self) -> Result<PublicKey> {
        PublicKey::from_der(&self.key).ok_or_else(|| invalid("the public key is of an unknown algorithm"))
    }

    /// Whether the request was signed with the key that it contains.
    pub fn is_authentic(&self) -> bool {
        self.public_key().is_ok_and(|key| self.signed.is_signed_by(&key))
    }

    /// Returns the hash function of the signature; `None` for Ed25519.
    pub fn digest(&self) -> Option<Digest> {
        self.signed.digest()
    }

    /// Returns all details, as `x509.read_csr` returns them.
    pub fn details(&self) -> Result<Map> {
        let key = self.public_key()?;
        Ok(map! {
            "key_size" => key.size().map(|size| size as i64),
            "key_type" => key.algorithm(),
            "subject" => self.subject.attributes(),
            "subject_hash" => pretty_hex(&self.subject.hash()),
            "subject_str" => self.subject.show(),
            "public_key_hash" => pretty_hex(&key.identifier()),
            "extensions" => show::extensions(&self.extensions, false),
        })
    }
}

/// The content of a request that is to be signed.
pub struct RequestPlan {
    /// The subject.
    pub subject: Name,
    /// The requested extensions.
    pub extensions: Vec<Extension>,
}

impl RequestPlan {
    /// Signs the request with the key for which a certificate is requested.
    pub fn sign(&self, key: &PrivateKey, digest: Digest) -> Result<Request> {
        let (algorithm, digest) = signature::algorithm(key, digest)?;
        let extensions = self.extensions.iter().flat_map(Extension::to_der).collect::<Vec<_>>();
        let attributes = if extensions.is_empty() {
            Vec::new()
        } else {
            let set = der::item(der::SET, &der::item(der::SEQUENCE, &extensions));
            der::sequence(&[&der::oid(EXTENSIONS).unwrap_or_default(), &set])
        };
        let body = der::sequence(&[
            &der::number(der::INTEGER, 0),
            self.subject.der(),
            &key.public()?.to_der(),
            &der::item(der::explicit(0), &attributes),
        ]);
        let whole = Signed::create(&body, &algorithm, key, digest)?;
        Request::from_der(&whole).ok_or_else(|| invalid("building the certificate signing request failed"))
    }
}
