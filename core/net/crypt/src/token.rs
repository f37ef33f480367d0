//! Unguessable random strings, and comparison in constant time.

use std::hint::black_box;

use base64::{Engine, prelude::BASE64_STANDARD};
use brine_digest::hex;
use rand::Rng;

/// The length of a [`nonce`] in characters.
pub const NONCE_LENGTH: usize = 32;

/// Returns random bytes from a generator seeded by the operating system.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

/// Returns a nonce of 32 hexadecimal digits, which a reply must repeat.
pub fn nonce() -> String {
    hex(random_bytes::<{ NONCE_LENGTH / 2 }>())
}

/// Returns the content of a root key file (`.<user>_key`), which proves to the master that a local client runs as that
/// user. About 75 characters, as Salt's.
pub fn root_key() -> String {
    BASE64_STANDARD.encode(random_bytes::<56>())
}

/// Compares two secrets in constant time; their lengths are not secret.
pub fn constant_time_eq(a: impl AsRef<[u8]>, b: impl AsRef<[u8]>) -> bool {
    let (a, b) = (a.as_ref(), b.as_ref());
    // Without the black box the compiler may stop at the first difference.
    let differences = a.iter().zip(b).fold(0, |sum, (a, b)| black_box(sum | (a ^ b)));
    a.len() == b.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_have_the_length_of_the_wire_format_and_never_repeat() {
        let made: std::collections::HashSet<_> = (0..1000).map(|_| nonce()).collect();
        assert_eq!(made.len(), 1000);
        assert!(made.iter().all(|text| text.len() == NONCE_LENGTH && text.bytes().all(|b| b.is_ascii_hexdigit())));
    }

    #[test]
    fn a_root_key_is_one_line_of_56_random_bytes() {
        let key = root_key();
        assert_eq!(BASE64_STANDARD.decode(&key).unwrap().len(), 56);
        assert_ne!(key, root_key());
    }

    #[test]
    fn secrets_are_equal_only_if_every_byte_is() {
        for (a, b, equal) in [
            ("", "", true),
            ("secret", "secret", true),
            ("secret", "Secret", false),
            ("secret", "secreT", false),
            ("secret", "secret1", false),
            ("secret", "", false),
        ] {
            assert_eq!(constant_time_eq(a, b), equal, "{a} {b}");
            assert_eq!(constant_time_eq(b, a), equal, "{b} {a}");
        }
    }
}
