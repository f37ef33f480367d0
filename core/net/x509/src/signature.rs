//! Signature algorithms: their object identifiers, and the hash functions that arguments can name.

use brine_rsa::{Digest, KeyKind, Padding};

use crate::der::{self, Item};
use crate::keys::{PrivateKey, PublicKey};
use crate::{Result, invalid};

/// The hash functions that arguments can name.
pub const DIGESTS: [(&str, Digest); 11] = [
    ("sha1", Digest::Sha1),
    ("sha224", Digest::Sha224),
    ("sha256", Digest::Sha256),
    ("sha384", Digest::Sha384),
    ("sha512", Digest::Sha512),
    ("sha512_224", Digest::Sha512_224),
    ("sha512_256", Digest::Sha512_256),
    ("sha3_224", Digest::Sha3_224),
    ("sha3_256", Digest::Sha3_256),
    ("sha3_384", Digest::Sha3_384),
    ("sha3_512", Digest::Sha3_512),
];

/// Returns the hash function with this name.
pub fn digest(name: &str) -> Result<Digest> {
    let digest = DIGESTS.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, digest)| *digest);
    digest.ok_or_else(|| {
        let all = DIGESTS.map(|(name, _)| name).join(", ");
        invalid(format!("Invalid value '{name}' for digest. Valid: {all}"))
    })
}

/// The signature algorithms: object identifier, type of the key, hash function, and name.
const ALGORITHMS: [(&str, KeyKind, Option<Digest>, &str); 22] = [
    ("1.2.840.113549.1.1.4", KeyKind::Rsa, Some(Digest::Md5), "md5WithRSAEncryption"),
    ("1.2.840.113549.1.1.5", KeyKind::Rsa, Some(Digest::Sha1), "sha1WithRSAEncryption"),
    ("1.2.840.113549.1.1.14", KeyKind::Rsa, Some(Digest::Sha224), "sha224WithRSAEncryption"),
    ("1.2.840.113549.1.1.11", KeyKind::Rsa, Some(Digest::Sha256), "sha256WithRSAEncryption"),
    ("1.2.840.113549.1.1.12", KeyKind::Rsa, Some(Digest::Sha384), "sha384WithRSAEncryption"),
    ("1.2.840.113549.1.1.13", KeyKind::Rsa, Some(Digest::Sha512), "sha512WithRSAEncryption"),
    ("1.2.840.113549.1.1.15", KeyKind::Rsa, Some(Digest::Sha512_224), ""),
    ("1.2.840.113549.1.1.16", KeyKind::Rsa, Some(Digest::Sha512_256), ""),
    ("2.16.840.1.101.3.4.3.13", KeyKind::Rsa, Some(Digest::Sha3_224), ""),
    ("2.16.840.1.101.3.4.3.14", KeyKind::Rsa, Some(Digest::Sha3_256), ""),
    ("2.16.840.1.101.3.4.3.15", KeyKind::Rsa, Some(Digest::Sha3_384), ""),
    ("2.16.840.1.101.3.4.3.16", KeyKind::Rsa, Some(Digest::Sha3_512), ""),
    ("1.2.840.10045.4.1", KeyKind::Ec, Some(Digest::Sha1), "ecdsa-with-SHA1"),
    ("1.2.840.10045.4.3.1", KeyKind::Ec, Some(Digest::Sha224), "ecdsa-with-SHA224"),
    ("1.2.840.10045.4.3.2", KeyKind::Ec, Some(Digest::Sha256), "ecdsa-with-SHA256"),
    ("1.2.840.10045.4.3.3", KeyKind::Ec, Some(Digest::Sha384), "ecdsa-with-SHA384"),
    ("1.2.840.10045.4.3.4", KeyKind::Ec, Some(Digest::Sha512), "ecdsa-with-SHA512"),
    ("2.16.840.1.101.3.4.3.9", KeyKind::Ec, Some(Digest::Sha3_224), ""),
    ("2.16.840.1.101.3.4.3.10", KeyKind::Ec, Some(Digest::Sha3_256), ""),
    ("2.16.840.1.101.3.4.3.11", KeyKind::Ec, Some(Digest::Sha3_384), ""),
    ("2.16.840.1.101.3.4.3.12", KeyKind::Ec, Some(Digest::Sha3_512), ""),
    ("1.3.101.112", KeyKind::Ed25519, None, "ed25519"),
];
const PSS: &str = "1.2.840.113549.1.1.10";
/// The object identifiers of hash functions in the parameters of PSS.
const HASHES: [(&str, Digest); 5] = [
    ("1.3.14.3.2.26", Digest::Sha1),
    ("2.16.840.1.101.3.4.2.4", Digest::Sha224),
    ("2.16.840.1.101.3.4.2.1", Digest::Sha256),
    ("2.16.840.1.101.3.4.2.2", Digest::Sha384),
    ("2.16.840.1.101.3.4.2.3", Digest::Sha512),
];

/// A structure with its signature: a certificate, signing request or revocation list.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    pub whole: Vec<u8>,
    pub body: Vec<u8>,
    algorithm: Vec<u8>,
    signature: Vec<u8>,
}

impl Signed {
    /// Parses the three parts of a signed structure: body, algorithm and signature.
    pub fn parse(bytes: &[u8]) -> Option<Signed> {
        let whole = der::only(bytes, der::SEQUENCE)?;
        let mut inside = whole.inside();
        let body = inside.expect(der::SEQUENCE)?;
        let algorithm = inside.expect(der::SEQUENCE)?;
        let signature = inside.expect(der::BIT_STRING)?.bits()?;
        inside.is_empty().then(|| Signed {
            whole: bytes.to_vec(),
            body: body.whole.to_vec(),
            algorithm: algorithm.content.to_vec(),
            signature: signature.to_vec(),
        })
    }

    /// Signs a body, and encodes the signed structure. `algorithm` is in DER.
    pub fn create(body: &[u8], algorithm: &[u8], key: &PrivateKey, digest: Option<Digest>) -> Result<Vec<u8>> {
        let signature =
            key.0.sign(body, digest).ok_or_else(|| invalid("signing failed: the key cannot sign with this digest"))?;
        Ok(der::sequence(&[body, algorithm, &der::bits(&signature)]))
    }

    /// Whether the structure was signed with this key.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        let Some((oid, digest, padding)) = self.parts() else { return false };
        let algorithm = ALGORITHMS.iter().find(|(other, ..)| *other == oid);
        if algorithm.is_some_and(|(_, kind, ..)| *kind != key.kind())
            || (padding == Padding::Pss && key.kind() != KeyKind::Rsa)
        {
            return false;
        }
        key.0.verify(&self.body, &self.signature, digest, padding)
    }

    /// Returns the hash function of the signature; `None` for Ed25519 and for unknown algorithms.
    pub fn digest(&self) -> Option<Digest> {
        self.parts()?.1
    }

    /// Returns the name of the algorithm, or its object identifier if it is unknown.
    pub fn algorithm(&self) -> String {
        let Some(oid) = self.oid() else { return String::new() };
        match ALGORITHMS.iter().find(|(other, _, _, name)| *other == oid && !name.is_empty()) {
            Some((_, _, _, name)) => (*name).to_owned(),
            None if oid == PSS => "rsassaPss".to_owned(),
            None if ALGORITHMS.iter().any(|(other, ..)| *other == oid) => "Unknown OID".to_owned(),
            None => oid,
        }
    }

    fn oid(&self) -> Option<String> {
        der::dotted(der::Reader(&self.algorithm).expect(der::OID)?.content)
    }

    fn parts(&self) -> Option<(String, Option<Digest>, Padding)> {
        let oid = self.oid()?;
        if oid == PSS {
            let mut inside = der::Reader(&self.algorithm);
            inside.expect(der::OID)?;
            let options = inside.expect(der::SEQUENCE)?;
            return Some((oid, Some(pss_digest(&options)?), Padding::Pss));
        }
        let (_, _, digest, _) = ALGORITHMS.iter().find(|(other, ..)| *other == oid)?;
        Some((oid, *digest, Padding::Default))
    }
}

fn pss_digest(options: &Item<'_>) -> Option<Digest> {
    let Some(hash) = options.inside().optional(der::explicit(0)) else { return Some(Digest::Sha1) };
    let oid = der::dotted(hash.inside().expect(der::SEQUENCE)?.inside().expect(der::OID)?.content)?;
    HASHES.iter().find(|(other, _)| *other == oid).map(|(_, digest)| *digest)
}

/// Returns the signature algorithm of a key in DER, and the hash function that it uses, which is `None` for Ed25519.
pub(crate) fn algorithm(key: &PrivateKey, digest: Digest) -> Result<(Vec<u8>, Option<Digest>)> {
    let kind = key.kind();
    let digest = (kind != KeyKind::Ed25519).then_some(digest);
    let algorithm = ALGORITHMS.iter().find(|(_, other, hash, _)| *other == kind && *hash == digest);
    let (oid, ..) =
        algorithm.ok_or_else(|| invalid("the digest is invalid: keys of this type have no signatures with it"))?;
    let oid = der::oid(oid).unwrap_or_default();
    let null = if kind == KeyKind::Rsa { der::item(der::NULL, &[]) } else { Vec::new() };
    Ok((der::sequence(&[&oid, &null]), digest))
}
