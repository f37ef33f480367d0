//! Encrypts the cluster's data on the NATS servers with a key that only its masters have.
//!
//! Otherwise write access to these servers would suffice to control every minion: to publish jobs, accept keys and read
//! pillars. Each message is bound to its subject or key, so that it cannot be moved to another one, and carries a
//! [`Stamp`], by which its readers refuse an old message that was published again.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use brine_crypt::{Cipher, CryptError, Session};
use brine_digest::Digest;

/// The longest time from sealing a message until the servers store it. A client keeps messages for that long in an
/// outage; afterwards they count as old.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(600);
/// The revision in a stamp without one.
const UNCONDITIONAL: u64 = u64::MAX;
/// The length of a packed stamp.
const STAMP: usize = 16;

/// The time and place of a message, authenticated with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// When it was sealed: the time since 1970 by the clock of the servers.
    pub sent: Duration,
    /// The revision that it replaces, 0 for none; `None` for a message that is written unconditionally.
    pub after: Option<u64>,
}

/// A decrypted message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Its stamp.
    pub stamp: Stamp,
    /// Its content.
    pub plain: Vec<u8>,
}

impl Stamp {
    /// Whether a message with this stamp is too old to have been stored for the first time at `stored`, in the time of
    /// the servers.
    pub fn is_late(&self, stored: Duration) -> bool {
        stored.abs_diff(self.sent) > MAX_DELAY
    }

    fn pack(self) -> [u8; STAMP] {
        let mut packed = [0; STAMP];
        packed[..8].copy_from_slice(&u64::try_from(self.sent.as_millis()).unwrap_or(u64::MAX).to_be_bytes());
        packed[8..].copy_from_slice(&self.after.unwrap_or(UNCONDITIONAL).to_be_bytes());
        packed
    }

    fn unpack(packed: [u8; STAMP]) -> Self {
        let [sent, after] = [0, 8]
            .map(|start| packed[start..start + 8].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)));
        Stamp { sent: Duration::from_millis(sent), after: (after != UNCONDITIONAL).then_some(after) }
    }
}

/// The key of a cluster.
#[derive(Clone)]
pub(crate) struct Seal {
    session: Session,
    cluster: String,
}

impl Seal {
    /// Derives the key from the secret of a cluster.
    pub fn new(cluster: &str, secret: &str) -> Self {
        let digest = Digest::Sha256.of(format!("brine cluster v2\n{cluster}\n{secret}"));
        let text = format!("aes-256-gcm:{}", BASE64_STANDARD.encode(digest));
        // The digest has the length of a key: 32 bytes.
        let session = Session::from_key_text(&text).unwrap_or_else(|_| Session::generate(Cipher::Aes256Gcm));
        Seal { session, cluster: cluster.to_owned() }
    }

    /// Encrypts a message with its stamp and binds it to a subject or key.
    pub fn seal(&self, context: &str, stamp: Stamp, plain: &[u8]) -> Vec<u8> {
        self.session.seal(&[&stamp.pack()[..], plain].concat(), None, self.purpose(context).as_bytes())
    }

    /// Decrypts a message that is bound to a subject or key.
    ///
    /// # Errors
    /// The message was encrypted with another secret, or for another subject or key.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Opened, CryptError> {
        let mut plain = self.session.open(sealed, None, self.purpose(context).as_bytes())?;
        let content = plain.split_off(plain.len().min(STAMP));
        let stamp = plain.try_into().map_err(|_| CryptError::Malformed("a stamp"))?;
        Ok(Opened { stamp: Stamp::unpack(stamp), plain: content })
    }

    fn purpose(&self, context: &str) -> String {
        format!("cluster {} {context}", self.cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP_OF_TEST: Stamp = Stamp { sent: Duration::from_millis(1_700_000_000_123), after: Some(7) };

    #[test]
    fn messages_decrypt_only_with_their_secret_and_context() {
        let (seal, other) = (Seal::new("c", &"s".repeat(32)), Seal::new("c", &"t".repeat(32)));
        for stamp in [STAMP_OF_TEST, Stamp { after: None, ..STAMP_OF_TEST }, Stamp { after: Some(0), ..STAMP_OF_TEST }]
        {
            let sealed = seal.seal("events.m1", stamp, b"hello");
            let opened = Opened { stamp, plain: b"hello".to_vec() };
            assert_eq!(seal.open("events.m1", &sealed).unwrap(), opened);
            assert!(seal.open("events.m2", &sealed).is_err());
            assert!(other.open("events.m1", &sealed).is_err());
            assert!(Seal::new("d", &"s".repeat(32)).open("events.m1", &sealed).is_err());
        }
        assert!(seal.open("events.m1", b"short").is_err());
    }

    #[test]
    fn a_message_is_late_if_it_was_stored_long_after_it_was_sealed() {
        for (stored, expected) in [
            (STAMP_OF_TEST.sent, false),
            (STAMP_OF_TEST.sent + MAX_DELAY, false),
            (STAMP_OF_TEST.sent + MAX_DELAY + Duration::from_millis(1), true),
            // A clock that was set back.
            (STAMP_OF_TEST.sent.saturating_sub(MAX_DELAY + Duration::from_millis(1)), true),
            (Duration::ZERO, true),
        ] {
            assert_eq!(STAMP_OF_TEST.is_late(stored), expected, "{stored:?}");
        }
    }
}
