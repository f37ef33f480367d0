//! Encrypted private keys: PKCS#8 with PBES2, the old encryption of PKCS#12, and the encryption of old PEM files.

use brine_rsa::{Cipher, Digest, pbkdf2};

use crate::der::{self, Item, Reader};
use crate::pem::Block;

const PBES2: &str = "1.2.840.113549.1.5.13";
const PBKDF2: &str = "1.2.840.113549.1.5.12";
const PBE_TRIPLE_DES: &str = "1.2.840.113549.1.12.1.3";
const CIPHERS: [(&str, Cipher); 4] = [
    ("2.16.840.1.101.3.4.1.2", Cipher::Aes128),
    ("2.16.840.1.101.3.4.1.22", Cipher::Aes192),
    ("2.16.840.1.101.3.4.1.42", Cipher::Aes256),
    ("1.2.840.113549.3.7", Cipher::TripleDes),
];
const PRFS: [(&str, Digest); 5] = [
    ("1.2.840.113549.2.7", Digest::Sha1),
    ("1.2.840.113549.2.8", Digest::Sha224),
    ("1.2.840.113549.2.9", Digest::Sha256),
    ("1.2.840.113549.2.10", Digest::Sha384),
    ("1.2.840.113549.2.11", Digest::Sha512),
];
/// The number of iterations of the key derivation for new files.
const ROUNDS: u32 = 100_000;
/// The maximum number of iterations that a file may request. They take some seconds.
const MAX_ROUNDS: i64 = 10_000_000;

/// Returns random bytes.
pub(crate) fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    rand::random::<[u8; LENGTH]>()
}

/// Encrypts a key in PKCS#8 form.
pub(crate) fn encrypt(key: &[u8], password: &[u8]) -> Option<Vec<u8>> {
    let (algorithm, data) = seal(key, password)?;
    Some(der::sequence(&[&algorithm, &der::item(der::OCTET_STRING, &data)]))
}

/// Encrypts data with AES-256; returns the algorithm in DER and the encrypted data.
pub(crate) fn seal(data: &[u8], password: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (salt, iv) = (random::<16>(), random::<16>());
    let key = pbkdf2(Digest::Sha256, password, &salt, ROUNDS, Cipher::Aes256.key_length())?;
    let sealed = Cipher::Aes256.encrypt(&key, &iv, data)?;
    let prf = der::sequence(&[&der::oid(PRFS[2].0)?, &der::item(der::NULL, &[])]);
    let parameters =
        der::sequence(&[&der::item(der::OCTET_STRING, &salt), &der::number(der::INTEGER, ROUNDS.into()), &prf]);
    let kdf = der::sequence(&[&der::oid(PBKDF2)?, &parameters]);
    let cipher = der::sequence(&[&der::oid(CIPHERS[2].0)?, &der::item(der::OCTET_STRING, &iv)]);
    Some((der::sequence(&[&der::oid(PBES2)?, &der::sequence(&[&kdf, &cipher])]), sealed))
}

/// Encrypts data with Triple DES, for readers that support only the old encryption of PKCS#12.
pub(crate) fn seal_compatible(data: &[u8], password: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (salt, rounds) = (random::<16>(), 50_000);
    let key = derive(Digest::Sha1, 1, password, &salt, rounds, 24);
    let iv = derive(Digest::Sha1, 2, password, &salt, rounds, 8);
    let sealed = Cipher::TripleDes.encrypt(&key, &iv, data)?;
    let parameters = der::sequence(&[&der::item(der::OCTET_STRING, &salt), &der::number(der::INTEGER, rounds.into())]);
    Some((der::sequence(&[&der::oid(PBE_TRIPLE_DES)?, &parameters]), sealed))
}

/// Whether bytes have the structure of an encrypted key.
pub(crate) fn is_encrypted(bytes: &[u8]) -> bool {
    parts(bytes).is_some()
}

fn parts(bytes: &[u8]) -> Option<(Item<'_>, Item<'_>)> {
    let mut inside = der::only(bytes, der::SEQUENCE)?.inside();
    let parts = (inside.expect(der::SEQUENCE)?, inside.expect(der::OCTET_STRING)?);
    inside.is_empty().then_some(parts)
}

/// Decrypts a key in encrypted PKCS#8 form; `None` if the password is wrong or the encryption is unknown.
pub(crate) fn decrypt(bytes: &[u8], password: &str) -> Option<Vec<u8>> {
    let (algorithm, data) = parts(bytes)?;
    open(&algorithm, data.content, password)
}

/// Decrypts data with the encryption algorithm that is stored with it.
pub(crate) fn open(algorithm: &Item<'_>, data: &[u8], password: &str) -> Option<Vec<u8>> {
    let mut inside = algorithm.inside();
    let oid = der::dotted(inside.expect(der::OID)?.content)?;
    let mut parameters = inside.expect(der::SEQUENCE)?.inside();
    match &oid[..] {
        PBES2 => open_pbes2(&mut parameters, data, password.as_bytes()),
        PBE_TRIPLE_DES => {
            let salt = parameters.expect(der::OCTET_STRING)?.content;
            let rounds = rounds(&parameters.expect(der::INTEGER)?)?;
            let password = wide(password);
            let key = derive(Digest::Sha1, 1, &password, salt, rounds, 24);
            let iv = derive(Digest::Sha1, 2, &password, salt, rounds, 8);
            Cipher::TripleDes.decrypt(&key, &iv, data)
        }
        _ => None,
    }
}

/// Returns a number of iterations; `None` if it is out of range.
pub(crate) fn rounds(item: &Item<'_>) -> Option<u32> {
    u32::try_from(item.small().filter(|rounds| (1..=MAX_ROUNDS).contains(rounds))?).ok()
}

fn open_pbes2(parameters: &mut Reader<'_>, data: &[u8], password: &[u8]) -> Option<Vec<u8>> {
    let mut kdf = parameters.expect(der::SEQUENCE)?.inside();
    let mut cipher = parameters.expect(der::SEQUENCE)?.inside();
    if der::dotted(kdf.expect(der::OID)?.content)? != PBKDF2 {
        return None;
    }
    let mut kdf = kdf.expect(der::SEQUENCE)?.inside();
    let salt = kdf.expect(der::OCTET_STRING)?.content;
    let rounds = rounds(&kdf.expect(der::INTEGER)?)?;
    kdf.optional(der::INTEGER);
    let digest = match kdf.optional(der::SEQUENCE) {
        None => Digest::Sha1,
        Some(prf) => {
            let oid = der::dotted(prf.inside().expect(der::OID)?.content)?;
            PRFS.iter().find(|(other, _)| *other == oid)?.1
        }
    };
    let oid = der::dotted(cipher.expect(der::OID)?.content)?;
    let (_, algorithm) = CIPHERS.iter().find(|(other, _)| *other == oid)?;
    let iv = cipher.expect(der::OCTET_STRING)?.content;
    let key = pbkdf2(digest, password, salt, rounds, algorithm.key_length())?;
    algorithm.decrypt(&key, iv, data)
}

/// Encodes a password for PKCS#12: as big-endian UTF-16, followed by two zero bytes.
pub(crate) fn wide(password: &str) -> Vec<u8> {
    password.encode_utf16().chain([0]).flat_map(u16::to_be_bytes).collect()
}

/// Derives a key (`id` 1), an initialization vector (2) or a MAC key (3), as defined by PKCS#12 (RFC 7292, B.2).
pub(crate) fn derive(digest: Digest, id: u8, password: &[u8], salt: &[u8], rounds: u32, length: usize) -> Vec<u8> {
    let block = if matches!(digest, Digest::Sha384 | Digest::Sha512) { 128 } else { 64 };
    let filled =
        |bytes: &[u8]| bytes.iter().copied().cycle().take(bytes.len().div_ceil(block) * block).collect::<Vec<_>>();
    let mut input = [filled(salt), filled(password)].concat();
    let mut out = Vec::new();
    loop {
        let mut hash = digest.of(&[&vec![id; block], &input[..]].concat());
        for _ in 1..rounds {
            hash = digest.of(&hash);
        }
        out.extend(&hash);
        if out.len() >= length || hash.is_empty() {
            out.truncate(length);
            return out;
        }
        let add = hash.iter().copied().cycle().take(block).collect::<Vec<_>>();
        for part in input.chunks_exact_mut(block) {
            // Adds both numbers and 1, modulo the size of a block.
            let mut carry = 1_u16;
            for (byte, more) in part.iter_mut().zip(&add).rev() {
                carry += u16::from(*byte) + u16::from(*more);
                *byte = carry as u8;
                carry >>= 8;
            }
        }
    }
}

/// Whether a block has the encryption of old versions of OpenSSL.
pub(crate) fn has_old_encryption(block: &Block) -> bool {
    block.headers.iter().any(|(name, value)| name == "Proc-Type" && value.ends_with("ENCRYPTED"))
}

/// Decrypts a block with the encryption of old versions of OpenSSL.
pub(crate) fn decrypt_old(block: &Block, password: &str) -> Option<Vec<u8>> {
    let (_, info) = block.headers.iter().find(|(name, _)| name == "DEK-Info")?;
    let (name, iv) = info.split_once(',')?;
    let cipher = match name {
        "AES-128-CBC" => Cipher::Aes128,
        "AES-192-CBC" => Cipher::Aes192,
        "AES-256-CBC" => Cipher::Aes256,
        "DES-EDE3-CBC" => Cipher::TripleDes,
        _ => return None,
    };
    let iv = hex(iv)?;
    let salt = iv.get(..8)?;
    let (mut key, mut last) = (Vec::new(), Vec::new());
    while key.len() < cipher.key_length() {
        last = Digest::Md5.of(&[&last[..], password.as_bytes(), salt].concat());
        key.extend(&last);
    }
    cipher.decrypt(&key[..cipher.key_length()], &iv, &block.bytes)
}

/// Decodes hexadecimal digits.
pub(crate) fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let pair = |at: usize| text.get(at..at + 2).filter(|pair| !pair.starts_with('+'));
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(pair(at)?, 16).ok()).collect()
}
