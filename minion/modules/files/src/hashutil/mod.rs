//! `hashutil`: digests and encodings of strings.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_context::{Context, Module};
use brine_crypt::token::constant_time_eq;
use brine_digest::{Digest, hex};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::user_files;
use brine_value::Value;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `hashutil`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "hashutil",
    [
        digest,
        digest_file,
        md5_digest,
        sha256_digest,
        sha512_digest,
        base64_b64encode,
        base64_encodestring,
        base64_decodestring,
        base64_b64decode,
        base64_encodefile,
        base64_decodefile,
        hmac_compute,
        hmac_signature,
        github_signature
    ]
);

/// Return the digest of a string: md5, sha256 or sha512.
///
/// CLI Example:
///
///     salt '*' hashutil.digest 'get salted' sha256
#[function]
pub fn digest(
    _context: &Context,
    /// Text.
    instr: Value,
    /// Type of the hash, such as `sha256`.
    #[default("md5".into())]
    checksum: String,
) -> CallResult {
    hash(instr.to_string().as_bytes(), &checksum)
}

/// Return the digest of a file's content.
///
/// CLI Example:
///
///     salt '*' hashutil.digest_file /path/to/file sha256
#[function]
pub fn digest_file(
    _context: &Context,
    /// Path of the file.
    infile: String,
    /// Type of the hash, such as `sha256`.
    #[default("md5".into())]
    checksum: String,
) -> CallResult {
    if !std::path::Path::new(&infile).is_file() {
        return Err(CallError::Execution(format!("File path '{infile}' not found.")));
    }
    hash(&read(&infile)?, &checksum)
}

/// Return the MD5 digest of a string.
///
/// CLI Example:
///
///     salt '*' hashutil.md5_digest 'get salted'
#[function]
pub fn md5_digest(
    _context: &Context,
    /// Text.
    instr: Value,
) -> CallResult {
    hash(instr.to_string().as_bytes(), "md5")
}

/// Return the SHA-256 digest of a string.
///
/// CLI Example:
///
///     salt '*' hashutil.sha256_digest 'get salted'
#[function]
pub fn sha256_digest(
    _context: &Context,
    /// Text.
    instr: Value,
) -> CallResult {
    hash(instr.to_string().as_bytes(), "sha256")
}

/// Return the SHA-512 digest of a string.
///
/// CLI Example:
///
///     salt '*' hashutil.sha512_digest 'get salted'
#[function]
pub fn sha512_digest(
    _context: &Context,
    /// Text.
    instr: Value,
) -> CallResult {
    hash(instr.to_string().as_bytes(), "sha512")
}

/// Encode a string as base64.
///
/// CLI Example:
///
///     salt '*' hashutil.base64_b64encode 'get salted'
#[function]
pub fn base64_b64encode(
    _context: &Context,
    /// Text.
    instr: Value,
) -> CallResult {
    Ok(STANDARD.encode(instr.to_string()).into())
}

/// Encode a string as base64, with a newline at the end.
///
/// CLI Example:
///
///     salt '*' hashutil.base64_encodestring 'get salted'
#[function]
pub fn base64_encodestring(
    _context: &Context,
    /// Text.
    instr: Value,
) -> CallResult {
    Ok(encode_lines(instr.to_string().as_bytes()).into())
}

/// Decode base64 of several lines into a string.
///
/// CLI Example:
///
///     salt '*' hashutil.base64_decodestring instr='Z2V0IHNhbHRlZA==\n'
#[function]
pub fn base64_decodestring(
    _context: &Context,
    /// Text.
    instr: String,
) -> CallResult {
    Ok(String::from_utf8_lossy(&decode_lines(&instr)?).into_owned().into())
}

/// Decode base64 into a string.
///
/// CLI Example:
///
///     salt '*' hashutil.base64_b64decode 'Z2V0IHNhbHRlZA=='
#[function]
pub fn base64_b64decode(
    _context: &Context,
    /// Text.
    instr: String,
) -> CallResult {
    let bytes = STANDARD.decode(instr.trim()).map_err(CallError::execution)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned().into())
}

/// Encode the content of a file as base64, in lines.
///
/// CLI Example:
///
///     salt '*' hashutil.base64_encodefile /path/to/binary_file
#[function]
pub fn base64_encodefile(
    _context: &Context,
    /// Path of the file.
    fname: String,
) -> CallResult {
    Ok(encode_lines(&read(&fname)?).into())
}

/// Decode base64 into a file.
///
/// CLI Example:
///
///     salt '*' hashutil.base64_decodefile instr='Z2V0IHNhbHRlZA==\n' outfile='/path/to/binary_file'
#[function]
pub fn base64_decodefile(
    _context: &Context,
    /// Text.
    instr: String,
    /// Path of the file to write.
    outfile: String,
) -> CallResult {
    let bytes = decode_lines(&instr)?;
    user_files::write(&outfile, bytes).map_err(|error| CallError::Execution(format!("{outfile}: {error}")))?;
    Ok(true.into())
}

/// Return the HMAC of a string with SHA-256, in hex.
///
/// CLI Example:
///
///     salt '*' hashutil.hmac_compute 'get salted' 'shared secret'
#[function]
pub fn hmac_compute(
    _context: &Context,
    /// Text.
    string: String,
    /// Secret key.
    shared_secret: String,
) -> CallResult {
    Ok(hex(hmac(Digest::Sha256, &string, &shared_secret)?).into())
}

/// Return whether a base64 string is the HMAC of another string with SHA-256.
///
/// CLI Example:
///
///     salt '*' hashutil.hmac_signature 'get salted' 'shared secret' 'eBWf9bstXg+NiP5AOwppB5HMvZiYMPzEM9W5YMm/AmQ='
#[function]
pub fn hmac_signature(
    _context: &Context,
    /// Text.
    string: String,
    /// Secret key.
    shared_secret: String,
    /// Signature to compare with.
    challenge_hmac: String,
) -> CallResult {
    let made = STANDARD.encode(hmac(Digest::Sha256, &string, &shared_secret)?);
    Ok(constant_time_eq(made, challenge_hmac).into())
}

/// Return whether a string has this GitHub signature: the name of a digest, `=` and the HMAC in hex.
///
/// CLI Example:
///
///     salt '*' hashutil.github_signature '{"ref":....} ' 'shared secret' 'sha1=bc6550fc290acf5b42283fa8deaf55cea0f8c206'
#[function]
pub fn github_signature(
    _context: &Context,
    /// Text.
    string: String,
    /// Secret key.
    shared_secret: String,
    /// Signature to compare with.
    challenge_hmac: String,
) -> CallResult {
    let Some((kind, challenge)) = challenge_hmac.split_once('=') else {
        return Err(CallError::Execution(
            "challenge_hmac is invalid: expected the name of a digest, '=' and hex digits, such as sha256=0f..".into(),
        ));
    };
    let made = hex(hmac(digest_named(kind)?, &string, &shared_secret)?);
    Ok(constant_time_eq(made, challenge).into())
}

fn read(path: &str) -> Result<Vec<u8>, CallError> {
    std::fs::read(path).map_err(|error| CallError::Execution(format!("{path}: {error}")))
}

fn hmac(digest: Digest, text: &str, secret: &str) -> Result<Vec<u8>, CallError> {
    digest.hmac(secret.as_bytes(), text.as_bytes()).map_err(CallError::execution)
}

fn digest_named(name: &str) -> Result<Digest, CallError> {
    Digest::named(name).ok_or_else(|| CallError::Execution(format!("Hash func '{name}' is not supported.")))
}

/// Returns base64 in lines of 76 characters, each with a newline.
fn encode_lines(bytes: &[u8]) -> String {
    bytes.chunks(57).map(|line| STANDARD.encode(line) + "\n").collect()
}

fn decode_lines(text: &str) -> Result<Vec<u8>, CallError> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(text).map_err(CallError::execution)
}

fn hash(bytes: &[u8], kind: &str) -> Result<Value, CallError> {
    Ok(hex(digest_named(kind)?.of(bytes)).into())
}

#[cfg(test)]
mod tests;
