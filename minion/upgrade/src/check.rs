//! What a program must fulfil before it is used: checksum, signature, architecture, version.

use std::cmp::Ordering;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_system::files::FileError;
use brine_x509::{Digest, KeyKind, PublicKey};

use crate::UpgradeError;
use crate::files::RUNNING;

/// The size of the part of a program that is examined.
const HEAD: u64 = 64 << 10;
/// The smallest RSA key.
const MIN_RSA_BITS: usize = 2048;

fn refused(text: impl Into<String>) -> UpgradeError {
    UpgradeError::Refused(text.into())
}

/// Returns the digest of a file that `sha256sum` has written for one file of this name.
///
/// # Errors
/// It has another form, or names another file.
pub fn checksum(text: &[u8], name: &str) -> Result<String, UpgradeError> {
    let invalid =
        || refused(format!("the checksum is invalid: expected one line 'SHA256  {name}', as sha256sum writes it"));
    let text = std::str::from_utf8(text).map_err(|_| invalid())?;
    let mut lines = text.lines();
    let (Some(line), None) = (lines.next(), lines.next()) else { return Err(invalid()) };
    let (digest, file) = line.split_once(' ').ok_or_else(invalid)?;
    // The second character tells text from binary.
    let file = file.strip_prefix([' ', '*']).ok_or_else(invalid)?;
    let is_digest = digest.len() == 64 && digest.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_digest && file == name { Ok(digest.to_ascii_lowercase()) } else { Err(invalid()) }
}

/// Verifies the signature of a checksum: bytes or Base64, of an Ed25519, ECDSA (SHA-256) or RSA key (PSS, SHA-256, at
/// least 2048 bits).
///
/// # Errors
/// The key is invalid, or the signature is not of this key and text.
pub fn signature(key: &[u8], signed: &[u8], signature: &[u8]) -> Result<(), UpgradeError> {
    let key =
        PublicKey::load(key).map_err(|error| refused(format!("the key of upgrade_pubkey is invalid: {error}")))?;
    if key.kind() == KeyKind::Rsa && key.size().is_none_or(|bits| bits < MIN_RSA_BITS) {
        return Err(refused(format!("the key of upgrade_pubkey is too short: expected at least {MIN_RSA_BITS} bits")));
    }
    let digest = (key.kind() != KeyKind::Ed25519).then_some(Digest::Sha256);
    let words: Vec<u8> = signature.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let decoded = STANDARD.decode(words).ok();
    if std::iter::once(signature).chain(decoded.as_deref()).any(|bytes| key.verify(signed, bytes, digest)) {
        return Ok(());
    }
    Err(refused("the signature is invalid: it is not of the key of upgrade_pubkey and this checksum"))
}

/// The facts of an ELF header that decide whether a host can run a program.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    /// 32 or 64 bits, and the order of bytes.
    class: [u8; 2],
    machine: u16,
    /// The dynamic loader; none in a static program.
    loader: Option<PathBuf>,
}

impl Header {
    fn read(path: &Path) -> Result<Self, UpgradeError> {
        let mut head = Vec::new();
        let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
        read.map_err(FileError::at("read", path))?;
        Self::parse(&head).ok_or_else(|| refused("the new program is invalid: expected an ELF executable for Linux"))
    }

    /// Parses little-endian headers, as of all architectures that Brine is built for.
    fn parse(head: &[u8]) -> Option<Self> {
        const DYNAMIC_LOADER: u32 = 3;
        if head.get(..4)? != b"\x7fELF" || *head.get(5)? != 1 {
            return None;
        }
        let class = [*head.get(4)?, *head.get(5)?];
        let number = |at: usize, size: usize| -> Option<usize> {
            let bytes = head.get(at..at.checked_add(size)?)?;
            usize::try_from(
                bytes.iter().rev().try_fold(0u64, |sum, byte| Some(sum.checked_mul(256)? + u64::from(*byte)))?,
            )
            .ok()
        };
        // An executable, or a position-independent one.
        if !matches!(number(16, 2)?, 2 | 3) {
            return None;
        }
        let machine = u16::try_from(number(18, 2)?).ok()?;
        let is_wide = class[0] == 2;
        let (table, size, count) = if is_wide {
            (number(32, 8)?, number(54, 2)?, number(56, 2)?)
        } else {
            (number(28, 4)?, number(42, 2)?, number(44, 2)?)
        };
        let mut loader = None;
        for entry in 0..count {
            let at = table.checked_add(entry.checked_mul(size)?)?;
            if number(at, 4)? != DYNAMIC_LOADER as usize {
                continue;
            }
            let (offset, length) = if is_wide {
                (number(at + 8, 8)?, number(at + 32, 8)?)
            } else {
                (number(at + 4, 4)?, number(at + 16, 4)?)
            };
            let text = head.get(offset..offset.checked_add(length)?)?;
            let text = std::str::from_utf8(text).ok()?.trim_end_matches('\0');
            loader = Some(PathBuf::from(text));
        }
        Some(Header { class, machine, loader })
    }
}

/// Checks that a program is for the architecture of this one, and that the host has its loader.
///
/// # Errors
/// It is not.
pub fn architecture(path: &Path) -> Result<(), UpgradeError> {
    let (own, new) = (Header::read(Path::new(RUNNING))?, Header::read(path)?);
    if (own.class, own.machine) != (new.class, new.machine) {
        return Err(refused(format!(
            "the new program is for another architecture: expected machine {} as {}, got {}",
            own.machine,
            std::env::consts::ARCH,
            new.machine
        )));
    }
    match new.loader {
        Some(loader) if !loader.exists() => Err(refused(format!(
            "the new program needs the loader {}, which this host does not have: use the program for its C library, or \
             the static one",
            loader.display()
        ))),
        _ => Ok(()),
    }
}

/// Compares two versions by their numbers: `1.10.0` is after `1.9.0`. What follows a number, as in `1.0.0-rc1`, does not
/// count.
pub fn compare(one: &str, other: &str) -> Ordering {
    let numbers = |version: &str| -> Vec<u64> {
        let numbers = version.split('.').map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(0)
        });
        let mut numbers: Vec<u64> = numbers.collect();
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        numbers
    };
    numbers(one).cmp(&numbers(other))
}

#[cfg(test)]
mod tests {
    use brine_x509::PrivateKey;

    use super::*;

    #[test]
    fn a_checksum_is_of_the_named_file() {
        let digest = "0123456789abcdef".repeat(4);
        for (text, is_valid) in [
            (format!("{digest}  brine\n"), true),
            (format!("{} *brine", digest.to_uppercase()), true),
            (format!("{digest}  other\n"), false),
            (format!("{digest}  brine\n{digest}  brine\n"), false),
            (format!("{}  brine\n", &digest[1..]), false),
            (digest.clone(), false),
            (String::new(), false),
        ] {
            let found = checksum(text.as_bytes(), "brine");
            assert_eq!(found.is_ok_and(|found| found == digest), is_valid, "{text}");
        }
    }

    #[test]
    fn signatures_are_of_the_key_and_the_text() {
        for (algorithm, digest) in [("ed25519", None), ("ec", Some(Digest::Sha256)), ("rsa", Some(Digest::Sha256))] {
            let key = PrivateKey::generate(algorithm, None).unwrap();
            let public = key.public().unwrap().to_pem();
            let made = key.sign(b"text", digest).unwrap();
            let accepts = |text: &[u8], made: &[u8]| signature(public.as_bytes(), text, made).is_ok();
            assert!(accepts(b"text", &made), "{algorithm}");
            assert!(accepts(b"text", format!("{}\n", STANDARD.encode(&made)).as_bytes()), "{algorithm}");
            assert!(!accepts(b"texT", &made), "{algorithm}");
            assert!(!accepts(b"text", b""), "{algorithm}");
            let other = PrivateKey::generate(algorithm, None).unwrap().public().unwrap().to_pem();
            assert!(signature(other.as_bytes(), b"text", &made).is_err(), "{algorithm}");
        }
        assert!(signature(b"no key", b"text", b"").unwrap_err().to_string().contains("upgrade_pubkey"));
    }

    #[test]
    fn only_programs_of_this_architecture_are_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("brine");
        let own = std::fs::read(RUNNING).unwrap();
        let result = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            architecture(&path).map_err(|error| error.to_string())
        };
        let changed = |at: usize, value: u8| {
            let mut bytes = own[..own.len().min(100_000)].to_vec();
            bytes[at] = value;
            bytes
        };
        assert_eq!(result(&own), Ok(()));
        assert!(result(&changed(18, 8)).unwrap_err().contains("another architecture"));
        assert!(result(b"#!/bin/sh\n").unwrap_err().contains("expected an ELF executable"));
        assert!(result(&own[..40]).unwrap_err().contains("expected an ELF executable"));
        // A core dump is no program.
        assert!(result(&changed(16, 4)).unwrap_err().contains("expected an ELF executable"));
        if let Some(loader) = Header::parse(&own).unwrap().loader {
            let loader = loader.to_str().unwrap().as_bytes().to_vec();
            let at = own.windows(loader.len()).position(|window| window == loader).unwrap();
            assert!(result(&changed(at + 1, b'X')).unwrap_err().contains("needs the loader"));
        }
    }

    #[test]
    fn headers_of_any_bytes_are_refused_without_a_panic() {
        let own = std::fs::read(RUNNING).unwrap();
        for at in 0..64 {
            for value in [0, 1, 0x7f, 0xff] {
                let mut head = own[..4096.min(own.len())].to_vec();
                head[at] = value;
                _ = Header::parse(&head);
                _ = Header::parse(&head[..at]);
            }
        }
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (one, other, order) in [
            ("1.10.0", "1.9.9", Ordering::Greater),
            ("1.0", "1.0.0", Ordering::Equal),
            ("1.0.0-rc1", "1.0.0", Ordering::Equal),
            ("0.1.0", "0.2.0", Ordering::Less),
        ] {
            assert_eq!(compare(one, other), order, "{one} {other}");
        }
    }
}
