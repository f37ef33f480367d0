//! Blocks of PEM files: their label, and their lines of Base64.

use base64::{Engine, prelude::BASE64_STANDARD};

use super::CryptError;

/// Returns the label and the bytes of the first PEM block. Ignores line breaks and spaces.
pub(super) fn read(text: &str) -> Result<(&str, Vec<u8>), CryptError> {
    let block = || {
        let (_, rest) = text.split_once("-----BEGIN ")?;
        let (label, rest) = rest.split_once("-----")?;
        let (body, rest) = rest.split_once("-----END ")?;
        rest.starts_with(label).then_some((label, body))
    };
    let (label, body) = block().ok_or(CryptError::BadKey("it has no BEGIN and END line of a PEM file"))?;
    let packed: String = body.split_whitespace().collect();
    let der = BASE64_STANDARD.decode(packed).map_err(|_| CryptError::BadKey("its content is not Base64"))?;
    Ok((label, der))
}

/// Returns the lines of a PEM file between the first and the last.
pub(super) fn body(der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let mut lines = String::with_capacity(text.len() + text.len() / 64 + 1);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        lines.push_str(line);
        lines.push('\n');
        rest = after;
    }
    lines
}
