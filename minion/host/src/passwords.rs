//! Hashes of passwords for `/etc/shadow`, as computed by the C library's `crypt`.

use base64ct::{Base64ShaCrypt, Encoding};
use brine_function::CallError;
use rand::distr::{Alphanumeric, SampleString};

/// Returns the hash of a password for `/etc/shadow`, with this salt or a new one. The salt may begin with the number of
/// rounds, as in `rounds=10000$salt`.
///
/// # Errors
/// The algorithm is neither `sha512` nor `sha256`, or the number of rounds is out of range.
pub fn hash(password: &str, salt: Option<&str>, algorithm: &str) -> Result<String, CallError> {
    let salt = salt.map_or_else(|| Alphanumeric.sample_string(&mut rand::rng(), 16), str::to_owned);
    let (rounds, text) = match salt.split_once('$') {
        Some((rounds, text)) => (rounds.strip_prefix("rounds=").and_then(|rounds| rounds.parse().ok()), text),
        None => (None, salt.as_str()),
    };
    let params = rounds.map_or(Ok(sha_crypt::Params::RECOMMENDED), sha_crypt::Params::new);
    let params = params.map_err(|problem| CallError::Execution(format!("hashing a password failed: {problem}")))?;
    let (password, bytes) = (password.as_bytes(), text.as_bytes());
    let (kind, hash) = match algorithm {
        "sha512" => ("6", encoded(&sha_crypt::sha512_crypt(password, bytes, params))),
        "sha256" => ("5", encoded(&sha_crypt::sha256_crypt(password, bytes, params))),
        other => {
            let message = format!("passwords cannot be hashed with '{other}': use sha512 or sha256");
            return Err(CallError::Execution(message));
        }
    };
    Ok(format!("${kind}${salt}${hash}"))
}

/// Encodes a digest: its bytes are taken from its thirds in turn, and each group starts with the next third.
fn encoded(digest: &[u8]) -> String {
    let third = digest.len() / 3;
    let places = (0..third).flat_map(|index| {
        let mut three = [index + 2 * third, index + third, index];
        // SHA-512 rotates in one direction, SHA-256 in the other.
        if digest.len() == 64 {
            three.rotate_right(index % 3);
        } else {
            three.rotate_left(index % 3);
        }
        three
    });
    let bytes: Vec<u8> = places.chain(3 * third..digest.len()).map(|index| digest[index]).collect();
    Base64ShaCrypt::encode_string(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_those_of_the_c_library() {
        for (salt, algorithm, expected) in [
            (
                "saltstring",
                "sha512",
                "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1",
            ),
            (
                "rounds=10000$saltstringsaltst",
                "sha512",
                "$6$rounds=10000$saltstringsaltst$OW1/O6BYHV6BcXZu8QVeXbDWra3Oeqh0sbHbbMCVNSnCM/UrjmM0Dp8vOuZeHBy/YTBmSK6H9qs/y3RnOaw5v.",
            ),
            ("saltstring", "sha256", "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
        ] {
            assert_eq!(hash("Hello world!", Some(salt), algorithm).unwrap(), expected);
        }
        assert!(hash("x", None, "md5").is_err());
        assert_ne!(hash("x", None, "sha512").unwrap(), hash("x", None, "sha512").unwrap());
    }
}
