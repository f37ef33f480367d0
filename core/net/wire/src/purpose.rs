//! The purposes of encrypted messages, which are authenticated as associated data. A message decrypts only for its
//! purpose and minion.

use brine_ids::MinionId;

/// A publication.
pub const PUBLISH: &[u8] = b"publish";

/// A minion's request.
pub fn request(id: &MinionId) -> Vec<u8> {
    format!("request\0{id}").into_bytes()
}

/// The reply to a minion's request.
pub fn reply(id: &MinionId) -> Vec<u8> {
    format!("reply\0{id}").into_bytes()
}
