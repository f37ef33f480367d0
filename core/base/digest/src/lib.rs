//! Digests and HMACs by name, hexadecimal encoding, and the numbers that Python draws for a seed ([`random`]).

pub mod random;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};

/// Encodes bytes as lower-case hexadecimal digits.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.as_ref().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xF)]).collect()
}

/// The error of a key that cannot be used for an HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid HMAC key")]
pub struct InvalidKey;

/// A hash algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Digest {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Digest {
    /// Returns the algorithm with this name, such as `sha256`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "md5" => Digest::Md5,
            "sha1" => Digest::Sha1,
            "sha224" => Digest::Sha224,
            "sha256" => Digest::Sha256,
            "sha384" => Digest::Sha384,
            "sha512" => Digest::Sha512,
            _ => return None,
        })
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Digest::Md5 => "md5",
            Digest::Sha1 => "sha1",
            Digest::Sha224 => "sha224",
            Digest::Sha256 => "sha256",
            Digest::Sha384 => "sha384",
            Digest::Sha512 => "sha512",
        }
    }

    /// Returns the digest of a reader's content.
    pub fn of_reader(self, reader: &mut impl Read) -> io::Result<Vec<u8>> {
        match self {
            Digest::Md5 => read_through::<Md5>(reader),
            Digest::Sha1 => read_through::<Sha1>(reader),
            Digest::Sha224 => read_through::<Sha224>(reader),
            Digest::Sha256 => read_through::<Sha256>(reader),
            Digest::Sha384 => read_through::<Sha384>(reader),
            Digest::Sha512 => read_through::<Sha512>(reader),
        }
    }

    /// Returns the digest of a regular file. Other files, such as pipes, are refused: they may have no end.
    pub fn of_file(self, path: &Path) -> io::Result<Vec<u8>> {
        // Checked before opening, which would block on a pipe without a writer.
        if !path.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        self.of_reader(&mut File::open(path)?)
    }

    /// Returns the digest of bytes.
    pub fn of(self, bytes: impl AsRef<[u8]>) -> Vec<u8> {
        match self {
            Digest::Md5 => Md5::digest(bytes).to_vec(),
            Digest::Sha1 => Sha1::digest(bytes).to_vec(),
            Digest::Sha224 => Sha224::digest(bytes).to_vec(),
            Digest::Sha256 => Sha256::digest(bytes).to_vec(),
            Digest::Sha384 => Sha384::digest(bytes).to_vec(),
            Digest::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }

    /// Returns the HMAC of bytes.
    pub fn hmac(self, key: &[u8], bytes: &[u8]) -> Result<Vec<u8>, InvalidKey> {
        match self {
            Digest::Md5 => signed::<Hmac<Md5>>(key, bytes),
            Digest::Sha1 => signed::<Hmac<Sha1>>(key, bytes),
            Digest::Sha224 => signed::<Hmac<Sha224>>(key, bytes),
            Digest::Sha256 => signed::<Hmac<Sha256>>(key, bytes),
            Digest::Sha384 => signed::<Hmac<Sha384>>(key, bytes),
            Digest::Sha512 => signed::<Hmac<Sha512>>(key, bytes),
        }
    }
}

fn read_through<D: sha2::Digest>(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut digest = D::new();
    let mut buffer = vec![0; 65_536];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(digest.finalize().to_vec()),
            length => digest.update(&buffer[..length]),
        }
    }
}

fn signed<M: Mac + KeyInit>(key: &[u8], bytes: &[u8]) -> Result<Vec<u8>, InvalidKey> {
    let mut mac = <M as KeyInit>::new_from_slice(key).map_err(|_| InvalidKey)?;
    mac.update(bytes);
    Ok(mac.finalize().into_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_with_two_digits_each() {
        assert_eq!(hex([0, 1, 0x7F, 0xFF]), "00017fff");
    }

    #[test]
    fn digests_are_found_by_name() {
        for (name, digest, hmac) in [
            ("md5", "900150983cd24fb0d6963f7d28e17f72", "d2fe98063f876b03193afb49b4979591"),
            ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d", "4fd0b215276ef12f2b3e4c8ecac2811498b656fc"),
            (
                "sha256",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                "9c196e32dc0175f86f4b1cb89289d6619de6bee699e4c378e68309ed97a1a6ab",
            ),
        ] {
            let algorithm = Digest::named(name).unwrap();
            assert_eq!(algorithm.name(), name);
            assert_eq!(hex(algorithm.of("abc")), digest, "{name}");
            assert_eq!(hex(algorithm.of_reader(&mut &b"abc"[..]).unwrap()), digest, "{name}");
            assert_eq!(hex(algorithm.hmac(b"key", b"abc").unwrap()), hmac, "{name}");
        }
        assert_eq!(Digest::named("crc32"), None);
        assert!(Digest::Md5.of_file(Path::new("/dev/zero")).is_err());
    }
}
