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
mod tests;
