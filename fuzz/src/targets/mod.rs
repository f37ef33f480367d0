//! The targets, one file an area.

pub mod files;
pub mod http;
pub mod render;
pub mod text;
pub mod wire;
pub mod zmtp;

/// Returns the longest prefix of the bytes that is valid UTF-8.
fn text_of(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}
