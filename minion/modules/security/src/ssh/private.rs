//! Private keys of `ssh`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_system::files;

/// The magic bytes of OpenSSH's private key format; the name of the cipher follows.
const MAGIC: &[u8] = b"openssh-key-v1\0";

/// Return whether a private key, or the key in a file, is protected by a passphrase.
///
/// CLI Example:
///
///     salt '*' ssh.key_is_encrypted /root/.ssh/id_ed25519
#[function]
pub fn key_is_encrypted(
    _context: &Context,
    /// Key.
    key: String,
) -> CallResult {
    let text =
        if key.contains("-----BEGIN") { key } else { files::read_to_string(&key).map_err(CallError::execution)? };
    Ok(is_encrypted(&text).into())
}

/// Whether a key in PEM form (PKCS#1, PKCS#8, or OpenSSH's own) is encrypted.
fn is_encrypted(pem: &str) -> bool {
    let mut lines = pem.lines().map(str::trim);
    let label = lines.next().unwrap_or_default();
    if label != "-----BEGIN OPENSSH PRIVATE KEY-----" {
        let is_encrypted = |line: &str| line.starts_with("Proc-Type:") && line.contains("ENCRYPTED");
        return label == "-----BEGIN ENCRYPTED PRIVATE KEY-----" || lines.any(is_encrypted);
    }
    let body: String = lines.take_while(|line| !line.starts_with('-')).collect();
    let decoded = BASE64_STANDARD.decode(body).unwrap_or_default();
    let cipher = decoded
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.split_first_chunk::<4>())
        .and_then(|(length, rest)| rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?));
    cipher.is_some_and(|cipher| cipher != b"none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_private_keys_are_detected() {
        let own = |cipher: &str| {
            let length = u8::try_from(cipher.len()).unwrap();
            let body = BASE64_STANDARD.encode([MAGIC, &[0, 0, 0, length], cipher.as_bytes(), b"..."].concat());
            format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n")
        };
        for (pem, expected) in [
            (own("none"), false),
            (own("aes256-ctr"), true),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\n!\n-----END".to_owned(), false),
            ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: x\n\nabc\n".to_owned(), true),
            ("-----BEGIN RSA PRIVATE KEY-----\nabc\n".to_owned(), false),
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nabc\n".to_owned(), true),
            (String::new(), false),
        ] {
            assert_eq!(is_encrypted(&pem), expected, "{pem}");
        }
    }
}
