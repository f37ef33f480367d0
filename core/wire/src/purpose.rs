//! What sealed texts are for: a text that was sealed for one purpose and minion opens for no other.

use brine_ids::MinionId;

/// The publish stream.
pub const PUBLISH: &[u8] = b"publish";

/// A minion's request.
pub fn request(id: &MinionId) -> Vec<u8> {
    format!("request\0{id}").into_bytes()
}

/// The reply to a minion's request.
pub fn reply(id: &MinionId) -> Vec<u8> {
    format!("reply\0{id}").into_bytes()
}
