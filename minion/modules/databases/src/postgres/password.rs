//! Passwords in the forms in which a server stores them: `md5`, `scram-sha-256` (RFC 5803), or plain text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brine_digest::Digest;
use brine_function::CallError;
use brine_value::Value;

/// The stored form of a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    Plain,
    Md5,
    Scram,
}

/// PostgreSQL's default number of iterations.
const ITERATIONS: u32 = 4096;
/// Maximum number of iterations, far above common settings: it limits the work that a server can impose on the minion.
const MAX_ITERATIONS: u32 = 10_000_000;

impl Storage {
    /// Parses `encrypted`: a boolean, `md5` or `scram-sha-256`. `md5` is the default, and the meaning of true.
    ///
    /// # Errors
    /// The value names another algorithm.
    pub fn read(encrypted: &Value) -> Result<Self, CallError> {
        match (encrypted.as_bool(), encrypted.as_str()) {
            (Some(false), _) => Ok(Storage::Plain),
            (Some(true), _) | (_, Some("md5")) => Ok(Storage::Md5),
            (_, Some("scram-sha-256")) => Ok(Storage::Scram),
            _ if encrypted.is_nil() => Ok(Storage::Md5),
            _ => Err(CallError::Execution(format!("Unknown password algorithm: {encrypted}"))),
        }
    }

    /// Returns the stored form of a password; a password that is in its stored form already is returned unchanged.
    ///
    /// # Errors
    /// The password has characters that SASLprep refuses.
    pub fn store(self, role: &str, password: &str) -> Result<String, CallError> {
        match self {
            Storage::Md5 if !password.starts_with("md5") => Ok(md5(role, password)),
            Storage::Scram if !password.starts_with("SCRAM-SHA-256") => {
                scram(password, &rand::random::<[u8; 16]>(), ITERATIONS)
            }
            _ => Ok(password.to_owned()),
        }
    }

    /// Returns whether a password, plain or in its stored form, matches the form that the server has stored.
    pub fn matches(self, role: &str, password: &str, stored: &str) -> bool {
        let expected = match self {
            Storage::Md5 if !password.starts_with("md5") => Some(md5(role, password)),
            Storage::Scram if !password.starts_with("SCRAM-SHA-256") => rehashed(password, stored),
            _ => Some(password.to_owned()),
        };
        expected.as_deref() == Some(stored)
    }
}

fn md5(role: &str, password: &str) -> String {
    format!("md5{}", brine_digest::hex(Digest::Md5.of(format!("{password}{role}"))))
}

/// Returns the SCRAM form of a password with the salt and the iterations of the stored form, for comparison.
fn rehashed(password: &str, stored: &str) -> Option<String> {
    let (iterations, rest) = stored.strip_prefix("SCRAM-SHA-256$")?.split_once(':')?;
    let iterations = iterations.parse().ok().filter(|number| (1..=MAX_ITERATIONS).contains(number))?;
    scram(password, &STANDARD.decode(rest.split_once('$')?.0).ok()?, iterations).ok()
}

fn scram(password: &str, salt: &[u8], iterations: u32) -> Result<String, CallError> {
    // As in PostgreSQL, a password that SASLprep rejects is used unchanged.
    let prepared = stringprep::saslprep(password).unwrap_or_else(|_| password.into());
    let hmac = |key: &[u8], bytes: &[u8]| Digest::Sha256.hmac(key, bytes).map_err(CallError::execution);
    // PBKDF2 with one block.
    let mut round = hmac(prepared.as_bytes(), &[salt, &1u32.to_be_bytes()].concat())?;
    let mut salted = round.clone();
    for _ in 1..iterations {
        round = hmac(prepared.as_bytes(), &round)?;
        salted.iter_mut().zip(&round).for_each(|(sum, byte)| *sum ^= byte);
    }
    let stored_key = Digest::Sha256.of(hmac(&salted, b"Client Key")?);
    let server_key = hmac(&salted, b"Server Key")?;
    let [salt, stored_key, server_key] = [salt, &stored_key, &server_key].map(|bytes| STANDARD.encode(bytes));
    Ok(format!("SCRAM-SHA-256${iterations}:{salt}${stored_key}:{server_key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_passwords_match() {
        assert_eq!(Storage::Md5.store("joe", "secret").unwrap(), "md5c59ec932d911ffdf487595b5a2adf973".to_owned());
        for storage in [Storage::Plain, Storage::Md5, Storage::Scram] {
            let stored = storage.store("joe", "pâss'word").unwrap();
            assert!(storage.matches("joe", "pâss'word", &stored), "{storage:?}");
            assert!(storage.matches("joe", &stored, &stored), "{storage:?}");
            assert!(!storage.matches("joe", "other", &stored), "{storage:?}");
        }
        assert!(!Storage::Scram.matches("joe", "x", "SCRAM-SHA-256$99999999999:AA==$AA==:AA=="));
        assert!(!Storage::Scram.matches("joe", "x", "SCRAM-SHA-256$0:AA==$AA==:AA=="));
    }

    #[test]
    fn algorithms_are_parsed() {
        for (value, storage) in [
            (Value::Nil, Storage::Md5),
            (true.into(), Storage::Md5),
            (false.into(), Storage::Plain),
            ("scram-sha-256".into(), Storage::Scram),
        ] {
            assert_eq!(Storage::read(&value).unwrap(), storage);
        }
        assert_eq!(Storage::read(&"sha1".into()).unwrap_err().to_string(), "ERROR: Unknown password algorithm: sha1");
    }
}
