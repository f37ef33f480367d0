//! `hashutil`: digests and encodings of texts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_core::crypt::token::hex;
use brine_core::function::CallError;
use brine_core::{Value, functions};
use sha2::Digest;

use crate::context::Context;

functions! {
    module "hashutil", context Context;

    /// The digest of a text: md5, sha256 or sha512.
    ///
    /// CLI Example:
    ///
    ///     salt '*' hashutil.digest 'get salted' sha256
    fn digest(_context, instr: Value, checksum: String = "md5".into()) {
        hash(instr.to_string().as_bytes(), &checksum)
    }

    /// The digest of a file's content.
    ///
    /// CLI Example:
    ///
    ///     salt '*' hashutil.digest_file /path/to/file sha256
    fn digest_file(_context, infile: String, checksum: String = "md5".into()) {
        let content = std::fs::read(&infile);
        hash(&content.map_err(|error| CallError::Execution(format!("{infile}: {error}")))?, &checksum)
    }

    /// The MD5 digest of a text.
    ///
    /// CLI Example:
    ///
    ///     salt '*' hashutil.md5_digest 'get salted'
    fn md5_digest(_context, instr: Value) {
        hash(instr.to_string().as_bytes(), "md5")
    }

    /// The SHA-256 digest of a text.
    ///
    /// CLI Example:
    ///
    ///     salt '*' hashutil.sha256_digest 'get salted'
    fn sha256_digest(_context, instr: Value) {
        hash(instr.to_string().as_bytes(), "sha256")
    }

    /// The SHA-512 digest of a text.
    ///
    /// CLI Example:
    ///
    ///     salt '*' hashutil.sha512_digest 'get salted'
    fn sha512_digest(_context, instr: Value) {
        hash(instr.to_string().as_bytes(), "sha512")
    }

    /// A text as base64.
    ///
    /// CLI Example:
    ///
    ///     salt '*' hashutil.base64_b64encode 'get salted'
    fn base64_b64encode(_context, instr: Value) {
        Ok(STANDARD.encode(instr.to_string()).into())
    }

    /// A text as base64, with a line end.
    ///
    /// CLI Example:
    ///
    ///     salt '*' hashutil.base64_encodestring 'get salted'
    fn base64_encodestring(_context, instr: Value) {
        let encoded = STANDARD.encode(instr.to_string());
        // Lines are of 76 signs.
        let lines: Vec<&str> = encoded.as_bytes().chunks(76).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        Ok(format!("{}\n", lines.join("\n")).into())
    }

    /// The text that base64 of several lines stands for.
    ///
    /// CLI Example:
    ///
    ///     salt '*' hashutil.base64_decodestring instr='Z2V0IHNhbHRlZA==\n'
    fn base64_decodestring(_context, instr: String) {
        let text: String = instr.chars().filter(|c| !c.is_whitespace()).collect();
        let bytes = STANDARD.decode(text).map_err(CallError::execution)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned().into())
    }

    /// The text that base64 stands for.
    ///
    /// CLI Example:
    ///
    ///     salt '*' hashutil.base64_b64decode 'Z2V0IHNhbHRlZA=='
    fn base64_b64decode(_context, instr: String) {
        let bytes = STANDARD.decode(instr.trim()).map_err(CallError::execution)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned().into())
    }
}

fn hash(bytes: &[u8], kind: &str) -> Result<Value, CallError> {
    match kind {
        "md5" => Ok(hex(md5::Md5::digest(bytes)).into()),
        "sha256" => Ok(hex(sha2::Sha256::digest(bytes)).into()),
        "sha512" => Ok(hex(sha2::Sha512::digest(bytes)).into()),
        other => Err(CallError::Execution(format!("Hash func '{other}' is not supported."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_hex() {
        for (kind, expected) in [
            ("md5", Some("0cc175b9c0f1b6a831c399e269772661")),
            ("sha256", Some("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")),
            ("sha1", None),
        ] {
            assert_eq!(hash(b"a", kind).ok(), expected.map(Value::from), "{kind}");
        }
    }
}
