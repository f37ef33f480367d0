//! Private and public keys: parses them in any encoding, with passwords.

use brine_rsa::{Curve, Digest, KeyKind, Padding};

use crate::der;
use crate::pkcs8;
use crate::{Result, X509Error, invalid, pem};

/// A private key.
pub struct PrivateKey(pub(crate) brine_rsa::PrivateKey);

impl PrivateKey {
    /// Generates a key with this algorithm: `rsa`, `ec` or `ed25519`. `size` is its size in bits.
    pub fn generate(algorithm: &str, size: Option<i64>) -> Result<PrivateKey> {
        let key = match algorithm {
            "rsa" => match size.unwrap_or(2048) {
                size @ (2048 | 3072 | 4096) => brine_rsa::PrivateKey::generate_rsa(size as u16),
                _ => return Err(invalid("RSA key size must be either 2048, 3072 or 4096 bits.")),
            },
            "ec" => brine_rsa::PrivateKey::generate_ec(match size.unwrap_or(256) {
                256 => Curve::P256,
                384 => Curve::P384,
                521 => Curve::P521,
                _ => return Err(invalid("EC key size must be either 256, 384, 521 bits.")),
            }),
            "ed25519" => brine_rsa::PrivateKey::generate_ed25519(),
            "ed448" => return Err(invalid("keys of the algorithm ed448 are not supported: use ed25519, ec or rsa")),
            _ => {
                return Err(invalid(format!(
                    "Invalid algorithm specified for generating private key: {algorithm}. Valid: rsa, ec, ed25519, ed448"
                )));
            }
        };
        key.map(PrivateKey).ok_or_else(|| invalid("generating a private key failed"))
    }

    /// Parses an unencrypted key in DER.
    pub(crate) fn from_der(der: &[u8]) -> Option<PrivateKey> {
        brine_rsa::PrivateKey::from_der(der).map(PrivateKey)
    }

    /// Returns the key in PKCS#8 form, encrypted if there is a password.
    pub fn to_der(&self, password: Option<&str>) -> Result<Vec<u8>> {
        let plain = self.0.to_der();
        let der = match password {
            Some(password) => plain.and_then(|plain| pkcs8::encrypt(&plain, password.as_bytes())),
            None => plain,
        };
        der.ok_or_else(|| invalid("encoding the private key failed"))
    }

    /// Returns the key in PEM, encrypted if there is a password.
    pub fn to_pem(&self, password: Option<&str>) -> Result<String> {
        let label = if password.is_some() { "ENCRYPTED PRIVATE KEY" } else { "PRIVATE KEY" };
        Ok(pem::encode(label, &self.to_der(password)?))
    }

    /// Returns the public key.
    pub fn public(&self) -> Result<PublicKey> {
        let key = self.0.public_der().and_then(|der| PublicKey::from_der(&der));
        key.ok_or_else(|| invalid("deriving the public key failed"))
    }

    /// Signs data; `digest` is `None` for Ed25519. Signatures of RSA keys have the padding PSS.
    pub fn sign(&self, data: &[u8], digest: Option<Digest>) -> Result<Vec<u8>> {
        let signature = self.0.sign_padded(data, digest, padding(self.kind()));
        signature.ok_or_else(|| invalid("signing failed: the key cannot sign with this digest"))
    }

    /// Returns the algorithm.
    pub fn kind(&self) -> KeyKind {
        self.0.kind()
    }

    /// Returns the name of the algorithm.
    pub fn algorithm(&self) -> &'static str {
        name(self.kind())
    }

    /// Returns the size in bits; `None` for Ed25519.
    pub fn size(&self) -> Option<usize> {
        (self.kind() != KeyKind::Ed25519).then(|| self.0.bits())
    }
}

/// Returns the padding of signatures of data.
fn padding(kind: KeyKind) -> Padding {
    match kind {
        KeyKind::Rsa => Padding::Pss,
        KeyKind::Ec | KeyKind::Ed25519 => Padding::Default,
    }
}

fn name(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Rsa => "rsa",
        KeyKind::Ec => "ec",
        KeyKind::Ed25519 => "ed25519",
    }
}

/// A public key.
pub struct PublicKey(pub(crate) brine_rsa::VerifyingKey);

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_der() == other.0.to_der()
    }
}

impl PublicKey {
    /// Parses a key in DER.
    pub fn from_der(der: &[u8]) -> Option<PublicKey> {
        brine_rsa::VerifyingKey::from_der(der).map(PublicKey)
    }

    /// Parses a key in PEM or DER.
    pub fn load(bytes: &[u8]) -> Result<PublicKey> {
        if pem::is_pem(bytes) {
            let der = pem::first(bytes, &["PUBLIC KEY"]);
            let key = der.and_then(|der| Self::from_der(&der));
            return key.ok_or(X509Error::Unreadable("Could not load PEM-encoded public key."));
        }
        Self::from_der(bytes).ok_or(X509Error::Unreadable("Could not load DER-encoded public key."))
    }

    /// Returns the key in DER.
    pub fn to_der(&self) -> Vec<u8> {
        self.0.to_der().unwrap_or_default()
    }

    /// Returns the key in PEM.
    pub fn to_pem(&self) -> String {
        pem::encode("PUBLIC KEY", &self.to_der())
    }

    /// Verifies a signature of data, as [`PrivateKey::sign`] makes it; the salt of PSS may have any length.
    pub fn verify(&self, data: &[u8], signature: &[u8], digest: Option<Digest>) -> bool {
        self.0.verify(data, signature, digest, padding(self.kind()))
    }

    /// Returns the algorithm.
    pub fn kind(&self) -> KeyKind {
        self.0.kind()
    }

    /// Returns the name of the algorithm.
    pub fn algorithm(&self) -> &'static str {
        name(self.kind())
    }

    /// Returns the size in bits; `None` for Ed25519.
    pub fn size(&self) -> Option<usize> {
        (self.kind() != KeyKind::Ed25519).then(|| self.0.bits())
    }

    /// Returns the SHA-1 digest of the key, which identifies it in extensions.
    pub fn identifier(&self) -> Vec<u8> {
        let der = self.to_der();
        let bits = der::only(&der, der::SEQUENCE).and_then(|item| {
            let mut inside = item.inside();
            inside.expect(der::SEQUENCE)?;
            inside.expect(der::BIT_STRING)?.bits()
        });
        Digest::Sha1.of(bits.unwrap_or_default())
    }
}
