//! Sources of a file's content: `salt://`, local files, `http://` and `https://`; and their verification.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use brine_context::StateContext;
use brine_context::files::in_environment;
use brine_digest::Digest;
use brine_function::Args;
use brine_host::web;
use brine_value::Value;

pub(crate) use super::signature::Signers;
use crate::checksum::hash_kind;
use crate::file_cache::{self, Remote};

/// Verification of a content.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verify {
    /// `source_hash`: a hash, optionally prefixed with its type, or the URL of a file of hashes.
    pub hash: Option<String>,
    /// Name of the file in the file of hashes.
    pub hash_name: Option<String>,
    /// Whether remote content is accepted without verification.
    pub skip: bool,
    /// Whether the server's ETag decides if a file has changed, so that no hash is needed.
    pub use_etag: bool,
    /// Whether the server's certificate is not verified: `verify_ssl: False`.
    pub trust_anyone: bool,
    /// Signature of the source: its URL, or `true` if it is inline.
    pub signature: Value,
    /// Signature of the file of hashes, likewise.
    pub hash_signature: Value,
    /// Required signers.
    pub signers: Signers,
}

impl Verify {
    /// Verifies by a hash, or by the name of the file in a file of hashes.
    pub fn by_hash(hash: Option<String>, hash_name: Option<String>) -> Self {
        Verify { hash: hash.filter(|hash| !hash.is_empty()), hash_name, ..Verify::default() }
    }
}

/// The arguments of states that accept a source by its checksum.
#[derive(Args)]
pub struct HashArgs {
    /// Expected checksum of the source (`sha256=...`), or the URL of a file that lists checksums.
    source_hash: Option<String>,
    /// Name that the checksum has in the file of `source_hash`, if it is not that of the source.
    source_hash_name: Option<String>,
    /// Whether a remote source is accepted without a checksum.
    #[default(false)]
    skip_verify: bool,
}

impl HashArgs {
    pub(crate) fn verify(self) -> Verify {
        Verify { skip: self.skip_verify, ..Verify::by_hash(self.source_hash, self.source_hash_name) }
    }
}

/// The arguments of states that accept a source by its signatures.
#[derive(Args)]
pub struct SignerArgs {
    /// Signature of the file of `source_hash`: a URL, or `true` for one within the file.
    #[default]
    source_hash_sig: Value,
    /// Fingerprints of keys, one of which must have made a valid signature; with `sig_backend: asymmetric` public keys.
    #[default]
    signed_by_any: Value,
    /// Fingerprints of keys, all of which must have made a valid signature; likewise.
    #[default]
    signed_by_all: Value,
    /// Keyring file that signatures are verified with.
    keyring: Option<String>,
    /// GnuPG home directory that signatures are verified with.
    gnupghome: Option<String>,
    /// Execution module that verifies signatures: `gpg` (by default) or `asymmetric`.
    sig_backend: Option<String>,
}

impl SignerArgs {
    pub(crate) fn added_to(self, verify: Verify) -> Verify {
        Verify {
            hash_signature: self.source_hash_sig,
            signers: Signers::new(&self.signed_by_any, &self.signed_by_all, self.keyring, self.gnupghome)
                .with_backend(self.sig_backend),
            ..verify
        }
    }
}

/// The arguments of states that also accept a source by its own signature.
#[derive(Args)]
pub struct SignatureArgs {
    /// Whether a copy of a web file is reused as long as the server's ETag is the same.
    #[default(false)]
    use_etag: bool,
    /// URL of a detached signature of the source; with `sig_backend: asymmetric` also a list, or the signature itself.
    #[default]
    signature: Value,
    #[args]
    signers: SignerArgs,
}

impl SignatureArgs {
    pub(crate) fn added_to(self, verify: Verify) -> Verify {
        self.signers.added_to(Verify { use_etag: self.use_etag, signature: self.signature, ..verify })
    }
}

/// The arguments for rendering a source.
#[derive(Args)]
pub struct TemplateArgs {
    /// Template engine that renders the source, such as `jinja`.
    pub(crate) template: Option<String>,
    /// Variables of the template, below those of `context`.
    #[default]
    pub(crate) defaults: Value,
}

/// A hash in hex, with its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hash {
    pub kind: &'static str,
    /// Hex digits.
    pub hex: String,
}

impl Hash {
    /// Whether the content has this hash.
    pub fn matches(&self, content: &[u8]) -> bool {
        self.digest_of(content) == self.hex
    }

    /// Returns the content's hash of the same type.
    pub fn digest_of(&self, content: &[u8]) -> String {
        digest(content, self.kind)
    }

    /// Returns the content's hash of the default type, SHA-256.
    pub fn sha256(content: &[u8]) -> String {
        digest(content, "sha256")
    }
}

/// The error of reading a source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The source does not exist; another source may.
    Missing(String),
    /// The source exists but cannot be used.
    Invalid(String),
    /// The expected hash is not available.
    HashUnavailable(String),
    /// The content has another hash than expected. The message is reported without a prefix.
    HashMismatch(String),
}

/// Reads the content of one source. `name` is the destination file.
pub(super) fn read(context: &StateContext, name: &str, source: &str, verify: &Verify) -> Result<Vec<u8>, Problem> {
    if let Some(path) = source.strip_prefix("salt://") {
        let (path, saltenv) = in_environment(path, &context.saltenv);
        let content =
            context.call.minion.files.read(path, saltenv).map_err(|error| Problem::Invalid(error.to_string()))?;
        return content
            .ok_or_else(|| Problem::Missing(format!("Source file {source} not found in saltenv '{saltenv}'")));
    }
    let is_remote = is_remote(source);
    if source.contains("://") && !is_remote && !source.starts_with("file://") {
        return Err(Problem::Invalid(format!(
            "source is invalid: expected a path or a URL of salt, file, http or https, got {}",
            web::redacted(source)
        )));
    }
    let expected_hash = match &verify.hash {
        Some(hash) if !(is_remote && verify.skip) => {
            Some(hash_of(context, hash, source, verify).map_err(Problem::HashUnavailable)?)
        }
        _ => None,
    };
    if !is_remote {
        let path = source.strip_prefix("file://").unwrap_or(source);
        let missing = |_| Problem::Missing(format!("Local file source {source} does not exist"));
        let content = std::fs::read(path).map_err(missing)?;
        return checked(name, content, expected_hash.as_ref());
    }
    if expected_hash.is_none() && !verify.skip && !verify.use_etag {
        return Err(Problem::Invalid(format!(
            "Unable to verify upstream hash of source file {}, please set source_hash or set skip_verify to True",
            web::redacted(source)
        )));
    }
    // A file with the expected hash is not fetched again.
    if let Some(hash) = &expected_hash
        && let Ok(have) = std::fs::read(name)
        && hash.matches(&have)
    {
        return Ok(have);
    }
    let content = fetched(context, source, verify)
        .map_err(|error| Problem::Invalid(format!("Failed to cache {}: {error}", web::redacted(source))))?;
    checked(name, content, expected_hash.as_ref())
}

/// Whether a source is on a web server.
pub(super) fn is_remote(source: &str) -> bool {
    source.starts_with("http://") || source.starts_with("https://")
}

/// Fetches a file from a web server. With `use_etag`, it is cached for the next run.
fn fetched(context: &StateContext, url: &str, verify: &Verify) -> Result<Vec<u8>, String> {
    if !verify.use_etag {
        return web::fetch_from(&context.call.web(), url, verify.trust_anyone).map_err(|error| error.to_string());
    }
    let remote = Remote { trust_anyone: verify.trust_anyone, use_etag: true, hash: None };
    let path = file_cache::cache(&context.call, url, &context.saltenv, &remote)?;
    let path = path.ok_or_else(|| format!("{} does not exist", web::redacted(url)))?;
    std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the mode of a source; sources on web servers have none.
pub(super) fn mode(context: &StateContext, source: &str) -> Result<Option<u32>, String> {
    if let Some(path) = source.strip_prefix("salt://") {
        let (path, saltenv) = in_environment(path, &context.saltenv);
        return context.call.minion.files.mode(path, saltenv).map_err(|error| error.to_string());
    }
    let path = source.strip_prefix("file://").unwrap_or(source);
    Ok(std::fs::metadata(path).ok().map(|status| status.mode() & 0o7777))
}

fn checked(name: &str, content: Vec<u8>, expected_hash: Option<&Hash>) -> Result<Vec<u8>, Problem> {
    let Some(Hash { kind, hex }) = expected_hash else { return Ok(content) };
    let actual = digest(&content, kind);
    if actual == *hex {
        return Ok(content);
    }
    Err(Problem::HashMismatch(format!(
        "Specified {kind} checksum for {name} ({hex}) does not match actual checksum ({actual})"
    )))
}

/// Whether a web server has a file at a URL.
pub(crate) fn url_exists(context: &StateContext, url: &str) -> bool {
    web::exists(&context.call.web(), url)
}

fn digest(content: &[u8], kind: &str) -> String {
    hex(&Digest::named(kind).unwrap_or(Digest::Sha256).of(content))
}

/// Bytes as hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Parses a hash: hex digits, optionally after its type and `=` or `:`.
pub(crate) fn parse(written: &str) -> Option<Hash> {
    let hex = written.rsplit(['=', ':']).next().unwrap_or(written).trim().to_lowercase();
    let kind = hash_kind(&hex)?;
    let named = written.split_once(['=', ':']).map(|(name, _)| name.trim().to_lowercase());
    named.is_none_or(|name| name == kind).then_some(Hash { kind, hex })
}

/// Resolves `source_hash`: a hash, or the URL of a file of hashes.
pub(crate) fn hash_of(context: &StateContext, written: &str, source: &str, verify: &Verify) -> Result<Hash, String> {
    if let Some(hash) = parse(written) {
        return Ok(hash);
    }
    let is_location = written.contains("://") || written.starts_with('/');
    if !is_location {
        return Err(invalid_source_hash(written));
    }
    let unchecked = Verify { skip: true, trust_anyone: verify.trust_anyone, ..Verify::default() };
    let content = read(context, "", written, &unchecked).map_err(|problem| missing_hash_file(written, &problem))?;
    check_signature(context, &content, &verify.hash_signature, verify)?;
    let text = String::from_utf8_lossy(&content);
    let names: Vec<&str> = match &verify.hash_name {
        Some(name) => vec![name],
        None => vec![Path::new(source).file_name().and_then(|name| name.to_str()).unwrap_or(source)],
    };
    find_hash(&text, &names).ok_or_else(|| invalid_source_hash(written))
}

/// Returns the message for a file of hashes that cannot be read, with the cause unless the file does not exist.
fn missing_hash_file(written: &str, problem: &Problem) -> String {
    let missing = format!("Source hash file {} not found", web::redacted(written));
    match problem {
        Problem::Missing(_) => missing,
        Problem::Invalid(cause) | Problem::HashUnavailable(cause) | Problem::HashMismatch(cause) => {
            format!("{missing}: {cause}")
        }
    }
}

/// Returns the message for a `source_hash` that is neither a hash nor a file of hashes.
pub(crate) fn invalid_source_hash(written: &str) -> String {
    format!(
        "Source hash {} format is invalid. The supported formats are: 1) a hash, 2) an expression in the format \
         <hash_type>=<hash>, or 3) either a path to a local file containing hashes, or a URI of a remote hash file. \
         Supported protocols for remote hash files are: salt, file, http, https, ftp, swift, s3. The hash may also not \
         be of a valid length, the following are supported hash types and lengths: md5 (32), sha1 (40), sha224 (56), \
         sha256 (64), sha384 (96), sha512 (128).",
        web::redacted(written)
    )
}

/// Verifies a content's signature, if one is required: `true` is an inline signature.
pub(crate) fn check_signature(
    context: &StateContext,
    content: &[u8],
    signature: &Value,
    verify: &Verify,
) -> Result<(), String> {
    if !signature.is_truthy() {
        return Ok(());
    }
    if *signature == Value::Bool(true) {
        return verify.signers.verify(&context.call, content, &[]);
    }
    let unchecked = Verify { skip: true, trust_anyone: verify.trust_anyone, ..Verify::default() };
    let one = [signature.clone()];
    let mut signatures = Vec::new();
    for location in signature.as_list().unwrap_or(&one) {
        signatures.push(match read(context, "", &location.to_string(), &unchecked) {
            Ok(bytes) => Value::Bytes(bytes),
            Err(_) if verify.signers.is_gpg() => return Err(format!("Detached signature file {location} not found")),
            // The signature itself, in Base64.
            Err(_) => location.clone(),
        });
    }
    verify.signers.verify(&context.call, content, &signatures)
}

/// Finds the hash in the line for a file with one of these names, or else the first hash.
pub(crate) fn find_hash(text: &str, names: &[&str]) -> Option<Hash> {
    let mut first = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || "()=".contains(c)).collect();
        let Some(hash) = words.iter().find_map(|word| parse(word)) else { continue };
        let is_named = |word: &&str| {
            let word = word.trim_start_matches('*');
            names.iter().any(|name| word == *name || word.ends_with(&format!("/{name}")))
        };
        if words.iter().any(is_named) {
            return Some(hash);
        }
        first.get_or_insert(hash);
    }
    first
}

/// Parses an item of a list of sources: a name, or a mapping from a name to its own hash.
pub(crate) fn entry(item: &Value, verify: &Verify) -> (String, Verify) {
    match item {
        Value::Map(map) => match map.first() {
            Some((source, hash)) => (source.to_string(), Verify { hash: Some(hash.to_string()), ..verify.clone() }),
            None => (String::new(), verify.clone()),
        },
        source => (source.to_string(), verify.clone()),
    }
}

#[cfg(test)]
mod tests;
