//! The publish keys, one for each cipher, with the master's signatures of them.

use std::sync::{Arc, OnceLock};

use brine_crypt::{Cipher, PublicKey, Session};
use brine_ids::MinionId;

/// The publish keys, which encrypt jobs for all minions.
#[derive(Clone)]
pub struct PublishKeys {
    /// For minions that use Salt's cipher.
    pub cbc: Session,
    /// For minions that use AES-256-GCM.
    pub gcm: Session,
    /// Never sent to minions. Session keys for Salt's cipher are derived from it, so that every member of a cluster can
    /// compute them.
    pub seed: Session,
    /// The master's signatures of both keys, created on first use.
    signatures: Arc<[OnceLock<Vec<u8>>; 2]>,
}

impl PublishKeys {
    /// Generates random keys.
    pub fn generate() -> Self {
        PublishKeys {
            cbc: Session::generate(Cipher::AesCbcHmac),
            gcm: Session::generate(Cipher::Aes256Gcm),
            seed: Session::generate(Cipher::Aes256Gcm),
            signatures: Arc::default(),
        }
    }

    /// Creates the keys from those that the members of a cluster share.
    pub fn of_cluster(cbc: Session, gcm: Session, seed: Session) -> Self {
        PublishKeys { cbc, gcm, seed, signatures: Arc::default() }
    }

    /// Returns the session with Salt's cipher of a minion that holds a key.
    pub(super) fn session_of(&self, id: &MinionId, public_key: &PublicKey) -> Session {
        let parts = [b"session", id.as_str().as_bytes(), public_key.to_pem().as_bytes()].map(<[u8]>::to_vec);
        Session::derived(self.seed.key_text().as_bytes(), &parts.each_ref().map(Vec::as_slice))
    }

    /// Returns the master's signature of a key, the same for all minions. `sign` creates it on first use.
    pub fn signature<E>(&self, cipher: Cipher, sign: impl FnOnce(&str) -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
        let cell = &self.signatures[usize::from(cipher == Cipher::Aes256Gcm)];
        if let Some(signature) = cell.get() {
            return Ok(signature.clone());
        }
        let made = sign(&self.of(cipher).key_text())?;
        Ok(cell.get_or_init(|| made).clone())
    }

    /// Returns the key of a cipher.
    pub fn of(&self, cipher: Cipher) -> &Session {
        match cipher {
            Cipher::AesCbcHmac => &self.cbc,
            Cipher::Aes256Gcm => &self.gcm,
        }
    }
}
