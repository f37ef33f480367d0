//! Encrypts the cluster's data on the NATS servers with a key that only its masters have.
//!
//! Otherwise write access to these servers would suffice to control every minion: to publish jobs, accept keys and read
//! pillars. Each message is bound to its subject or key, so that it cannot be moved to another one.

use base64::{Engine, prelude::BASE64_STANDARD};
use brine_crypt::{Cipher, CryptError, Session};
use brine_digest::Digest;

/// The key of a cluster.
#[derive(Clone)]
pub(crate) struct Seal {
    session: Session,
    cluster: String,
}

impl Seal {
    /// Derives the key from the secret of a cluster.
    pub fn new(cluster: &str, secret: &str) -> Self {
        let digest = Digest::Sha256.of(format!("brine cluster v1\n{cluster}\n{secret}"));
        let text = format!("aes-256-gcm:{}", BASE64_STANDARD.encode(digest));
        // The digest has the length of a key: 32 bytes.
        let session = Session::from_key_text(&text).unwrap_or_else(|_| Session::generate(Cipher::Aes256Gcm));
        Seal { session, cluster: cluster.to_owned() }
    }

    /// Encrypts a message and binds it to a subject or key.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Vec<u8> {
        self.session.seal(plain, None, self.purpose(context).as_bytes())
    }

    /// Decrypts a message that is bound to a subject or key.
    ///
    /// # Errors
    /// The message was encrypted with another secret, or for another subject or key.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, CryptError> {
        self.session.open(sealed, None, self.purpose(context).as_bytes())
    }

    fn purpose(&self, context: &str) -> String {
        format!("cluster {} {context}", self.cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_decrypt_only_with_their_secret_and_context() {
        let (seal, other) = (Seal::new("c", &"s".repeat(32)), Seal::new("c", &"t".repeat(32)));
        let sealed = seal.seal("events.m1", b"hello");
        assert_eq!(seal.open("events.m1", &sealed).unwrap(), b"hello");
        assert!(seal.open("events.m2", &sealed).is_err());
        assert!(other.open("events.m1", &sealed).is_err());
        assert!(Seal::new("d", &"s".repeat(32)).open("events.m1", &sealed).is_err());
    }
}
