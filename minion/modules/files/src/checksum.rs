//! Checksums of files and bytes, by the names of their types.

use std::path::Path;

use brine_digest::{Digest, hex};
use brine_function::CallError;

/// Returns the hash of a file in hex, of the type with this name.
pub fn digest(path: &Path, form: &str) -> Result<String, CallError> {
    let digest = digest_named(form)?
        .of_file(path)
        .map_err(|error| CallError::Execution(format!("{}: {error}", path.display())))?;
    Ok(hex(digest))
}

fn digest_named(form: &str) -> Result<Digest, CallError> {
    Digest::named(form).ok_or_else(|| CallError::Execution(format!("Invalid hash type: {form}")))
}

/// Returns the type of a hash, by its number of hex digits.
pub fn hash_kind(hex: &str) -> Option<&'static str> {
    let kind = match hex.len() {
        32 => "md5",
        40 => "sha1",
        56 => "sha224",
        64 => "sha256",
        96 => "sha384",
        128 => "sha512",
        _ => return None,
    };
    hex.chars().all(|c| c.is_ascii_hexdigit()).then_some(kind)
}

/// Returns the hash of bytes, in hex digits.
pub fn hex_digest(bytes: &[u8], form: &str) -> Result<String, CallError> {
    Ok(hex(digest_named(form)?.of(bytes)))
}
