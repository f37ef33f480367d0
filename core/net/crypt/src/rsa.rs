//! RSA keys, read and written in the forms of Salt.

use std::fmt;
use std::sync::Arc;

use brine_rsa::Hash;
use sha1::{Digest, Sha1};
use sha2::{Sha224, Sha256};

use super::{CryptError, EncryptionAlgorithm, SignatureAlgorithm, passphrase, pem};

/// A private key. `Debug` shows only its fingerprint.
#[derive(Clone)]
pub struct PrivateKey {
    pub(super) native: Arc<brine_rsa::Key>,
    public: PublicKey,
}

/// A public key. Two are equal if their numbers are, regardless of their PEM layout.
#[derive(Clone)]
pub struct PublicKey {
    pub(super) native: Arc<brine_rsa::PublicKey>,
    /// The key in SPKI form, which has one encoding.
    der: Arc<[u8]>,
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for PublicKey {}

impl PrivateKey {
    /// Generates a key. 2048 bits take tens of milliseconds, 4096 hundreds.
    pub fn generate(bits: usize) -> Result<Self, CryptError> {
        let allowed = u16::try_from(bits).ok().filter(|bits| *bits >= 2048);
        let key = allowed.and_then(brine_rsa::Key::generate).ok_or(CryptError::BadKeySize(bits))?;
        Self::from_native(key)
    }

    fn from_native(native: brine_rsa::Key) -> Result<Self, CryptError> {
        let public = PublicKey::from_native(native.public().ok_or(BAD_NUMBERS)?)?;
        Ok(PrivateKey { native: Arc::new(native), public })
    }

    /// Parses an unencrypted key in PKCS#1 form, which Salt writes, or in PKCS#8 form.
    pub fn from_pem(text: &str) -> Result<Self, CryptError> {
        Self::from_pem_with(text, None)
    }

    /// As [`PrivateKey::from_pem`], with the passphrase for an encrypted key.
    pub fn from_pem_with(text: &str, passphrase: Option<&str>) -> Result<Self, CryptError> {
        if let Some(sealed) = passphrase::Sealed::from_pem(text)? {
            let der = sealed.open(passphrase.ok_or(CryptError::BadKey(PASSPHRASE))?)?;
            return Self::from_der(&der).map_err(|_| CryptError::BadKey(passphrase::WRONG));
        }
        let (label, der) = pem::read(text)?;
        match label {
            "ENCRYPTED PRIVATE KEY" => Err(CryptError::BadKey(passphrase::FORM)),
            "PRIVATE KEY" | "RSA PRIVATE KEY" => Self::from_der(&der),
            _ => Err(CryptError::BadKey("it is not a private key")),
        }
    }

    fn from_der(der: &[u8]) -> Result<Self, CryptError> {
        brine_rsa::Key::from_der(der).ok_or(BAD_NUMBERS).and_then(Self::from_native)
    }

    /// Encodes the key in PKCS#1 form, as Salt writes it.
    pub fn to_pem(&self) -> Result<String, CryptError> {
        Ok(format!("-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----\n", pem::body(&self.to_der()?)))
    }

    /// Encodes the key encrypted with a passphrase, in Salt's format.
    pub fn to_pem_with(&self, passphrase: &str) -> Result<String, CryptError> {
        Ok(passphrase::Sealed::seal(&self.to_der()?, passphrase).to_pem())
    }

    fn to_der(&self) -> Result<Vec<u8>, CryptError> {
        self.native.to_der().ok_or(CryptError::BadKey("it cannot be written"))
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        self.public.clone()
    }

    /// Decrypts data that was encrypted to the public key.
    pub fn decrypt(&self, data: &[u8], algorithm: EncryptionAlgorithm) -> Result<Vec<u8>, CryptError> {
        let hash = match algorithm {
            EncryptionAlgorithm::OaepSha1 => Hash::Sha1,
            EncryptionAlgorithm::OaepSha224 => Hash::Sha224,
        };
        self.native.decrypt_oaep(data, hash).ok_or(CryptError::WrongKey)
    }

    /// Signs data.
    pub fn sign(&self, data: &[u8], algorithm: SignatureAlgorithm) -> Result<Vec<u8>, CryptError> {
        let signature = match algorithm {
            SignatureAlgorithm::Pkcs1v15Sha1 => self.native.sign_pkcs1(&Sha1::digest(data), Hash::Sha1),
            SignatureAlgorithm::Pkcs1v15Sha224 => self.native.sign_pkcs1(&Sha224::digest(data), Hash::Sha224),
        };
        signature.ok_or(FAILED)
    }
}

impl PublicKey {
    /// Parses a key in SPKI form, which Salt writes, or in PKCS#1 form, with or without line breaks: Salt strips some
    /// of them on the wire.
    pub fn from_pem(text: &str) -> Result<Self, CryptError> {
        let (label, der) = pem::read(text)?;
        if !matches!(label, "PUBLIC KEY" | "RSA PUBLIC KEY") {
            return Err(CryptError::BadKey("it is not a public key"));
        }
        brine_rsa::PublicKey::from_der(&der).ok_or(BAD_PUBLIC_NUMBERS).and_then(Self::from_native)
    }

    fn from_native(native: brine_rsa::PublicKey) -> Result<Self, CryptError> {
        let der = native.to_der().ok_or(BAD_PUBLIC_NUMBERS)?.into();
        Ok(PublicKey { native: Arc::new(native), der })
    }

    /// Encodes the key in SPKI form with a final line break, as Salt writes it into files.
    pub fn to_pem(&self) -> String {
        format!("-----BEGIN PUBLIC KEY-----\n{}-----END PUBLIC KEY-----\n", pem::body(&self.der))
    }

    /// Returns the fingerprint that operators compare: the SHA-256 of the PEM text between the first and the last line,
    /// as colon-separated pairs of hexadecimal digits. As `key.finger` and `master_finger`, and `salt-key -F` before
    /// 3008; from 3008 on that includes the first and last line, so that the fingerprints of the two ends differ there.
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::digest(pem::body(&self.der));
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
    }

    /// Encrypts a short message, such as a session key, to the private key.
    pub fn encrypt(&self, data: &[u8], algorithm: EncryptionAlgorithm) -> Result<Vec<u8>, CryptError> {
        let hash = match algorithm {
            EncryptionAlgorithm::OaepSha1 => Hash::Sha1,
            EncryptionAlgorithm::OaepSha224 => Hash::Sha224,
        };
        self.native.encrypt_oaep(data, hash).ok_or(CryptError::BadLength(data.len()))
    }

    /// Verifies a signature of the private key.
    pub fn verify(&self, data: &[u8], signature: &[u8], algorithm: SignatureAlgorithm) -> Result<(), CryptError> {
        let is_valid = match algorithm {
            SignatureAlgorithm::Pkcs1v15Sha1 => self.native.verify_pkcs1(&Sha1::digest(data), signature, Hash::Sha1),
            SignatureAlgorithm::Pkcs1v15Sha224 => {
                self.native.verify_pkcs1(&Sha224::digest(data), signature, Hash::Sha224)
            }
        };
        if is_valid { Ok(()) } else { Err(CryptError::BadSignature) }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.public().fingerprint())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

pub(super) const FAILED: CryptError = CryptError::BadKey("it fails to sign; is the file damaged?");
const BAD_PUBLIC_NUMBERS: CryptError = CryptError::BadKey("its numbers are not those of an RSA public key");
const BAD_NUMBERS: CryptError = CryptError::BadKey("its numbers are not those of an RSA private key");
const PASSPHRASE: &str = "it has a passphrase: give it as `key_pass`, or write the key without one (openssl rsa)";

#[cfg(test)]
pub(super) mod tests {
    use std::sync::LazyLock;

    use base64::{Engine, prelude::BASE64_STANDARD};

    use super::*;

    /// A key generated by Salt for these tests and used nowhere else.
    pub const PEM: &str = include_str!("testdata/identity.pem");
    const PUB: &str = include_str!("testdata/identity.pub");

    /// The parsed key.
    pub static KEY: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::from_pem(PEM).unwrap());

    /// Returns data that Salt created with that key, by name.
    pub fn made_by_salt(name: &str) -> Vec<u8> {
        let all = include_str!("testdata/salt.txt");
        let line = all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap();
        BASE64_STANDARD.decode(line).unwrap()
    }

    #[test]
    fn keys_are_written_byte_for_byte_as_salt_writes_them() {
        assert_eq!(KEY.to_pem().unwrap(), PEM);
        assert_eq!(KEY.public().to_pem(), PUB);
    }

    #[test]
    fn every_form_of_a_key_is_parsed() {
        let pkcs8 = PrivateKey::from_pem(include_str!("testdata/identity.pkcs8.pem")).unwrap();
        assert_eq!(pkcs8.to_pem().unwrap(), PEM);
        for text in [
            PUB.to_owned(),
            PUB.trim().to_owned(),
            PUB.replace('\n', ""),
            PUB.replace('\n', "\r\n"),
            format!("  \n{PUB}\n\n"),
            PUB.replace("PUBLIC", "RSA PUBLIC"),
            include_str!("testdata/identity.pkcs1.pub").to_owned(),
        ] {
            assert_eq!(PublicKey::from_pem(&text).unwrap(), KEY.public(), "{text}");
        }
    }

    #[test]
    fn invalid_keys_are_refused_with_a_reason() {
        let message = |text: &str| PrivateKey::from_pem(text).unwrap_err().to_string();
        insta::assert_snapshot!(message(""), @"this is not a usable RSA key: it has no BEGIN and END line of a PEM file");
        insta::assert_snapshot!(message(PUB), @"this is not a usable RSA key: it is not a private key");
        insta::assert_snapshot!(message(&PEM.replace("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\n")), @"this is not a usable RSA key: it is encrypted in another format than Salt's: convert it (openssl rsa -aes256 -traditional)");
        insta::assert_snapshot!(message(&PEM.replacen('\n', "\n?", 2)), @"this is not a usable RSA key: its content is not Base64");
        insta::assert_snapshot!(PublicKey::from_pem(&PUB.replacen("MII", "MIJ", 1)).unwrap_err(), @"this is not a usable RSA key: its numbers are not those of an RSA public key");
        assert!(PublicKey::from_pem(PEM).is_err());
    }

    #[test]
    fn the_fingerprint_matches_key_finger() {
        insta::assert_snapshot!(KEY.public().fingerprint(), @"22:80:76:00:db:a3:65:bc:f6:2b:16:6d:10:94:51:14:44:58:38:ab:1a:db:b1:48:08:17:c4:1c:71:f1:a9:50");
    }

    #[test]
    fn printing_a_private_key_shows_its_fingerprint_alone() {
        assert_eq!(format!("{:?}", *KEY), format!("PrivateKey({})", KEY.public().fingerprint()));
    }

    #[test]
    fn salts_signatures_are_created_and_verified() {
        for algorithm in SignatureAlgorithm::ALL {
            let signature = made_by_salt(&format!("sign {algorithm}"));
            assert_eq!(KEY.sign(b"brine", *algorithm).unwrap(), signature, "{algorithm}");
            KEY.public().verify(b"brine", &signature, *algorithm).unwrap();
            assert!(KEY.public().verify(b"Brine", &signature, *algorithm).is_err());
            assert!(KEY.public().verify(b"brine", &signature[1..], *algorithm).is_err());
        }
        let sha1 = made_by_salt("sign PKCS1v15-SHA1");
        assert!(KEY.public().verify(b"brine", &sha1, SignatureAlgorithm::Pkcs1v15Sha224).is_err());
    }

    #[test]
    fn data_encrypted_by_salt_is_decrypted_and_vice_versa() {
        for algorithm in EncryptionAlgorithm::ALL {
            assert_eq!(KEY.decrypt(&made_by_salt(&format!("encrypt {algorithm}")), *algorithm).unwrap(), b"brine");
            let sealed = KEY.public().encrypt(b"session", *algorithm).unwrap();
            assert_eq!(KEY.decrypt(&sealed, *algorithm).unwrap(), b"session");
        }
        let sha1 = made_by_salt("encrypt OAEP-SHA1");
        assert!(matches!(KEY.decrypt(&sha1, EncryptionAlgorithm::OaepSha224), Err(CryptError::WrongKey)));
        assert!(matches!(KEY.decrypt(b"short", EncryptionAlgorithm::OaepSha1), Err(CryptError::WrongKey)));
        let long = KEY.public().encrypt(&[0; 256], EncryptionAlgorithm::OaepSha1);
        assert!(matches!(long, Err(CryptError::BadLength(256))));
    }

    #[test]
    fn keys_of_unsafe_or_absurd_sizes_are_not_generated() {
        for bits in [0, 512, 1024, 2047, 8193, usize::MAX] {
            assert!(matches!(PrivateKey::generate(bits), Err(CryptError::BadKeySize(_))), "{bits}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(label in "(RSA )?(PUBLIC|PRIVATE) KEY", body in "[A-Za-z0-9+/=\n]{0,80}") {
            let text = format!("-----BEGIN {label}-----{body}-----END {label}-----");
            let _ = (PrivateKey::from_pem(&text), PublicKey::from_pem(&text), PublicKey::from_pem(&body));
        }

        #[test]
        fn any_bytes_are_refused(bytes in proptest::prop_oneof![
            proptest::collection::vec(0u8.., 0..300),
            proptest::collection::vec(0u8.., 256),
        ]) {
            let public = KEY.public();
            proptest::prop_assert!(KEY.decrypt(&bytes, EncryptionAlgorithm::OaepSha1).is_err());
            proptest::prop_assert!(public.verify(b"x", &bytes, SignatureAlgorithm::Pkcs1v15Sha1).is_err());
            proptest::prop_assert!(public.recover_x931(&bytes).is_err());
        }
    }
}
