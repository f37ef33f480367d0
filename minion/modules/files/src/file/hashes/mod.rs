//! `file`: hashes in files of hashes, and sources that exist.

use std::path::Path;

use brine_context::Context;
use brine_function::arguments::refuse;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::paths::expand;
use brine_host::web;
use brine_system::files;
use brine_value::{Map, Value, map};

use super::state::source::{Hash, find_hash, invalid_source_hash, parse};

/// Execution functions of `file`.
pub static FUNCTIONS: Functions<Context> = registry!("file", [extract_hash, get_source_sum, source_list]);

/// Return a hash and its type from a file of hashes: from the line for `source_hash_name`, `file_name` or `source`, or
/// else the first hash; nothing if there is none. With `hash_type`, hashes of other types are ignored.
///
/// CLI Example:
///
///     salt '*' file.extract_hash /path/to/hash/file sha512 /etc/foo
#[function]
pub fn extract_hash(
    _context: &Context,
    /// Path of the file of hashes.
    hash_fn: String,
    /// Type of the hash, such as `sha256`.
    #[default("sha256".into())]
    hash_type: String,
    /// Path of the file that the checksum belongs to.
    #[default]
    file_name: String,
    /// URL or path of the source.
    #[default]
    source: String,
    /// Name that the checksum has in the file of `source_hash`.
    source_hash_name: Option<String>,
) -> CallResult {
    let text = files::read_to_string(expand(&hash_fn)).map_err(CallError::execution)?;
    let names = [source_hash_name.unwrap_or_default(), file_name, source];
    Ok(found(&text, &hash_type, &names).map(described).into())
}

/// Return a hash and its type: of `source_hash`, which is a hash, `type=hash`, or the path or URL of a file of hashes.
/// With `verify_ssl=False` the certificate of its server is not verified. `source_hash_sig` is refused; without it
/// `sig_backend`, `keyring` and `gnupghome` are without effect.
///
/// CLI Example:
///
///     salt '*' file.get_source_sum /tmp/foo.tar.gz source=http://mydomain.tld/foo.tar.gz source_hash=499ae16dcae71eeb7c3a30c75ea7a1a6
///     salt '*' file.get_source_sum /tmp/foo.tar.gz source=http://mydomain.tld/foo.tar.gz source_hash=https://mydomain.tld/hashes.md5
#[function]
pub fn get_source_sum(
    context: &Context,
    /// Path of the file that the checksum belongs to.
    #[default]
    file_name: String,
    /// URL or path of the source.
    #[default]
    source: String,
    /// Checksum of the source (`sha256=...`), or the URL of a file that lists checksums.
    #[default]
    source_hash: String,
    /// Name that the checksum has in the file of `source_hash`.
    source_hash_name: Option<String>,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
    /// Whether certificates of web servers are verified.
    #[default(true)]
    verify_ssl: bool,
    /// `source_hash_sig` and `signed_by_any` are refused: the state `file.managed` verifies signatures.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let refused = [
        ("source_hash_sig", "the state file.managed verifies signatures"),
        ("signed_by_any", "the state file.managed verifies signatures"),
        ("signed_by_all", "the state file.managed verifies signatures"),
    ];
    refuse("file.get_source_sum", &kwargs, &refused)?;
    if let Some(hash) = parse(&source_hash) {
        return Ok(described(hash).into());
    }
    if !source_hash.contains("://") && !source_hash.starts_with('/') {
        return Err(CallError::Execution(invalid_source_hash(&source_hash)));
    }
    let content = brine_context::files::content_from(context, &source_hash, &saltenv, !verify_ssl);
    let content = content.map_err(CallError::execution)?;
    let content = content
        .ok_or_else(|| CallError::Execution(format!("Source hash file {} not found", web::redacted(&source_hash))))?;
    let names = [source_hash_name.unwrap_or_default(), file_name, source];
    match found(&String::from_utf8_lossy(&content), "", &names) {
        Some(hash) => Ok(described(hash).into()),
        None => Err(CallError::Execution(invalid_source_hash(&source_hash))),
    }
}

/// Return the first source of a list that exists, and its hash. An item is a source, or a mapping from a source to its
/// hash.
///
/// CLI Example:
///
///     salt '*' file.source_list salt://http/httpd.conf '{hash_type: 'md5', 'hsum': <md5sum>}' base
#[function]
pub fn source_list(
    context: &Context,
    /// URL or path of the source.
    source: Value,
    /// Checksum of the source (`sha256=...`), or the URL of a file that lists checksums.
    source_hash: Value,
    /// Environment of the file server.
    saltenv: String,
) -> CallResult {
    let Value::List(sources) = &source else { return Ok(Value::List(vec![source, source_hash])) };
    for item in sources {
        let (source, hash) = match item {
            Value::Map(one) if one.len() == 1 => match one.first() {
                Some((source, hash)) if hash.is_truthy() => (source.clone(), hash.clone()),
                Some((source, _)) => (source.clone(), source_hash.clone()),
                None => continue,
            },
            source => (source.clone(), source_hash.clone()),
        };
        let url = source.to_string();
        if matches!(brine_context::files::content(context, &url, &saltenv), Ok(Some(_))) {
            return Ok(Value::List(vec![source, hash]));
        }
    }
    Err(CallError::Execution("none of the specified sources were found".into()))
}

fn described(hash: Hash) -> Map {
    map! {"hsum" => hash.hex, "hash_type" => hash.kind}
}

/// Finds the hash on the line of one of the names, the first name first, or else the first hash. Empty names are
/// skipped; hashes of another type than `kind` are ignored.
fn found(text: &str, kind: &str, names: &[String]) -> Option<Hash> {
    let is_of_kind = |line: &&str| find_hash(line, &[]).is_some_and(|hash| kind.is_empty() || hash.kind == kind);
    let lines: Vec<&str> = text.lines().filter(is_of_kind).collect();
    let mut first = None;
    for name in names.iter().filter(|name| !name.is_empty()) {
        let base = Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name);
        let of_name =
            |line: &&&str| line.split(|c: char| c.is_whitespace() || "()=*/\\".contains(c)).any(|word| word == base);
        first = first.or_else(|| lines.iter().find(of_name));
    }
    find_hash(first.or(lines.first())?, &[])
}

#[cfg(test)]
mod tests;
