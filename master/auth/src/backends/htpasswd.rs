//! Hashes in Apache's htpasswd files: bcrypt (`htpasswd -B`), MD5-crypt with 1,000 rounds (`htpasswd -m`, the default),
//! and SHA-1.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_crypt::token::constant_time_eq;
use brine_digest::Digest;

/// The prefix of Apache's variant of MD5-crypt.
const APR1: &str = "$apr1$";
/// The maximum length of an MD5-crypt salt.
const APR1_SALT: usize = 8;
const APR1_ROUNDS: usize = 1000;
/// The maximum cost of bcrypt: the limit of `htpasswd`, about ten seconds. A cost of 31 would hold a thread for days.
const MAX_COST: u32 = 17;

/// Whether a password matches a hash.
pub(super) fn is_password(hash: &str, password: &str) -> bool {
    if let Some(rest) = hash.strip_prefix(APR1) {
        let salt = rest.split('$').next().unwrap_or_default();
        return constant_time_eq(hash, apr1(password.as_bytes(), salt));
    }
    if let Some(digest) = hash.strip_prefix("{SHA}") {
        return constant_time_eq(digest, STANDARD.encode(Digest::Sha1.of(password)));
    }
    if ["$2a$", "$2b$", "$2y$"].iter().any(|scheme| hash.starts_with(scheme)) {
        let cost = hash.get(4..6).and_then(|cost| cost.parse::<u32>().ok());
        if cost.is_some_and(|cost| cost > MAX_COST) {
            tracing::error!(
                "a hash of an htpasswd file is too costly: create it with htpasswd -B -C {MAX_COST} or less"
            );
            return false;
        }
        return bcrypt::verify(password, hash).unwrap_or(false);
    }
    // The hash itself is not logged, because old DES hashes can be cracked.
    tracing::error!("a hash of an htpasswd file is not supported: create it with htpasswd -B");
    false
}

/// Returns the MD5-crypt hash of a password. Only the first eight bytes of the salt are used.
fn apr1(password: &[u8], salt: &str) -> String {
    let salt = salt.get(..APR1_SALT).unwrap_or(salt);
    let joined = |parts: &[&[u8]]| Digest::Md5.of(parts.concat());
    let inner = joined(&[password, salt.as_bytes(), password]);
    let mut first = [password, APR1.as_bytes(), salt.as_bytes()].concat();
    first.extend(inner.iter().cycle().take(password.len()));
    let mut length = password.len();
    while length > 0 {
        first.push(if length & 1 == 1 { 0 } else { password[0] });
        length >>= 1;
    }
    let mut digest = Digest::Md5.of(first);
    for round in 0..APR1_ROUNDS {
        let is_odd = round % 2 == 1;
        let salt = if round % 3 == 0 { "" } else { salt };
        let again = if round % 7 == 0 { &[] } else { password };
        let (start, end) = if is_odd { (password, &digest[..]) } else { (&digest[..], password) };
        digest = joined(&[start, salt.as_bytes(), again, end]);
    }
    format!("{APR1}{salt}${}", encoded(&digest))
}

/// Encodes a digest of 16 bytes as 22 characters in crypt's alphabet and byte order.
fn encoded(digest: &[u8]) -> String {
    const CHARACTERS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let at = |index: usize| u32::from(digest.get(index).copied().unwrap_or_default());
    let groups = [(0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5)];
    let numbers = groups.map(|(high, middle, low)| ((at(high) << 16) | (at(middle) << 8) | at(low), 4));
    let characters = |(number, count): (u32, u32)| {
        (0..count).map(move |place| char::from(CHARACTERS[(number >> (6 * place)) as usize & 0x3F]))
    };
    numbers.into_iter().chain([(at(11), 2)]).flat_map(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_verify_against_every_hash_scheme() {
        for (hash, password) in [
            ("$apr1$abcdefgh$5VEbMkemELfbhC5ck.U.z1", "pw"),
            ("$apr1$x$UKuMBND8xlxT5G/AErCfs.", "hunter2"),
            ("$apr1$saltsalt$phfXqgt8VNScGVliGxDyg0", "a-password-that-is-longer-than-sixteen-bytes"),
            ("{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=", "pw"),
        ] {
            assert!(is_password(hash, password), "{hash}");
            for wrong in ["", "PW", &format!("{password} ")] {
                assert!(!is_password(hash, wrong), "{hash} {wrong}");
            }
        }
        let bcrypt = bcrypt::hash("pw", 4).unwrap();
        assert!(is_password(&bcrypt, "pw") && !is_password(&bcrypt, "other"));
    }

    /// A hash whose check would take days.
    const COSTLY: &str = "$2y$31$abcdefghijklmnopqrstuuWgdyWXFJQc4RNRaTmCYVUbGNqMNxpmS";

    #[test]
    fn invalid_hashes_match_no_password() {
        for hash in
            ["", "pw", "$apr1$", "$apr1$x", "$apr1$x$y", "$apr1$ä$y", "$1$x$y", "rl9xGGQ2BYxyE", "$2y$99$x", COSTLY]
        {
            for password in ["", "pw", hash] {
                assert!(!is_password(hash, password), "{hash} {password}");
            }
        }
    }
}
