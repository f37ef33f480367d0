//! `file.cached`: a file of the file server or a web server, cached on this host.

use std::path::{Path, PathBuf};

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, function};
use brine_host::web::redacted;
use brine_system::user_files;
use brine_value::{Value, map};

use super::source::{self, Hash, Problem, Verify};
use crate::file_cache;

/// The arguments of `file.cached`.
#[derive(Args)]
pub struct CachedArgs {
    /// URL of the file.
    name: String,
    #[args]
    expected: source::HashArgs,
    /// Environment of the file server; that of the SLS by default.
    saltenv: Option<String>,
    /// Whether a copy of a web file is reused as long as the server's ETag is the same.
    #[default(false)]
    use_etag: bool,
    #[args]
    signers: source::SignerArgs,
}

/// Ensure that a file of the file server or a web server is in the cache.
///
/// SLS Example:
///
///     salt://app/app.tar.gz:
///       file.cached: []
///
///     https://example.com/app-1.2.tar.gz:
///       file.cached:
///         - source_hash: sha256=4c9e2df3a6b1d1d8e5a9c5c1c2b4c0a4b5f9dd5ac8c1f9d2b1d0f7b54a1d2e30
#[function]
pub fn cached(context: &StateContext, #[args] args: CachedArgs) -> CallResult {
    let verify = args.signers.added_to(Verify { use_etag: args.use_etag, ..args.expected.verify() });
    let context = StateContext { saltenv: args.saltenv.unwrap_or_else(|| context.saltenv.clone()), ..context.clone() };
    Ok(state(&context, &args.name, &verify).into())
}

/// Ensure that a file is not in the cache.
///
/// SLS Example:
///
///     https://example.com/app-1.1.tar.gz:
///       file.not_cached: []
#[function]
pub fn not_cached(
    context: &StateContext,
    /// URL of the file whose copy is removed.
    name: String,
    /// Environment of the file server that a `salt://` URL belongs to.
    #[default("base".into())]
    saltenv: String,
) -> CallResult {
    Ok(removed(context, &name, &saltenv).into())
}

/// Returns the cache path of a file; `None` for a name that leads out of the cache.
pub(crate) fn cache_path(context: &StateContext, name: &str) -> Option<PathBuf> {
    file_cache::path_of(&context.call.config().cachedir, name, &context.saltenv)
}

pub(crate) fn state(context: &StateContext, name: &str, verify: &Verify) -> StateReturn {
    if !name.contains("://") && !Path::new(name).is_absolute() {
        return StateReturn::failed(name, format!("'{name}' is neither an absolute path nor the URL of a file"));
    }
    let is_remote = name.starts_with("http://") || name.starts_with("https://");
    if is_remote && verify.hash.is_none() && !verify.skip && !verify.use_etag {
        let comment = format!(
            "Unable to verify upstream hash of source file {}, please set source_hash or set skip_verify or use_etag to True",
            redacted(name)
        );
        return StateReturn::failed(name, comment);
    }
    let expected_hash =
        match verify.hash.as_deref().map(|hash| source::hash_of(context, hash, name, verify)).transpose() {
            Ok(hash) => hash,
            Err(error) => return StateReturn::failed(name, error),
        };
    let local = name.strip_prefix("file://").unwrap_or(name);
    let Some(path) = cache_path(context, name) else {
        return StateReturn::failed(name, format!("{name} does not name a file below its root"));
    };
    let cached_content = std::fs::read(&path).ok();
    if context.test {
        return predict(name, cached_content.as_deref(), expected_hash.as_ref());
    }
    let expected_hash = expected_hash.filter(|_| !verify.skip);
    if !local.contains("://") {
        return check_local_file(name, local, expected_hash.as_ref());
    }
    let report = path.display().to_string();
    // A current copy is not fetched again.
    let content = match (&cached_content, &expected_hash) {
        (Some(content), Some(hash)) if hash.matches(content) => Ok(content.clone()),
        // The hash is compared below, where the message can name the cached path.
        _ => source::read(
            context,
            &report,
            name,
            &Verify { hash: None, skip: verify.skip || expected_hash.is_some(), ..verify.clone() },
        ),
    };
    let content = match content {
        Ok(content) => content,
        Err(Problem::HashMismatch(error)) => return StateReturn::failed(name, error),
        Err(problem) => {
            tracing::error!(name = redacted(name), ?problem, "caching a file failed");
            let comment = format!("Failed to cache {}, check minion log for more information", redacted(name));
            return StateReturn::failed(name, comment);
        }
    };
    let sum = |bytes: &[u8]| expected_hash.as_ref().map_or_else(|| Hash::sha256(bytes), |hash| hash.digest_of(bytes));
    let (old, new) = (cached_content.as_deref().map(sum), sum(&content));
    let outcome = match &expected_hash {
        Some(Hash { hex, .. }) if *hex == new => {
            StateReturn::ok(name, format!("File is already cached to {report} with hash {new}"))
        }
        Some(Hash { hex, .. }) => {
            let differs = format!("the hash ({new}) does not match the specified hash ({hex})");
            StateReturn::failed(name, format!("File is cached to {report}, but {differs}"))
        }
        None => StateReturn::ok(name, format!("File is cached to {report}")),
    };
    if old.as_ref() == Some(&new) {
        return outcome;
    }
    match file_cache::store(&path, &content) {
        Ok(()) => {
            outcome.with_changes(map! {"hash" => map! {"old" => old.map_or(Value::Nil, Value::from), "new" => new}})
        }
        Err(error) => StateReturn::failed(name, format!("Failed to cache {}: {error}", redacted(name))),
    }
}

/// Applies `file.not_cached`: removes the cached copy of a file.
pub(super) fn removed(context: &StateContext, name: &str, saltenv: &str) -> StateReturn {
    let local = name.strip_prefix("file://").unwrap_or(name);
    if !local.contains("://") {
        let path = Path::new(local).canonicalize().unwrap_or_else(|_| local.into());
        return StateReturn::ok(name, format!("File {} is a local path, no action taken", path.display()));
    }
    let Some(copy) = file_cache::found(&context.call.config().cachedir, name, saltenv) else {
        return StateReturn::ok(name, format!("{name} is not cached"));
    };
    let shown_copy = copy.display();
    match user_files::remove_file(&copy) {
        Ok(()) => StateReturn::ok(name, format!("{shown_copy} was deleted")).with_changes(map! {"deleted" => true}),
        Err(error) => StateReturn::failed(name, format!("Failed to delete {shown_copy}: {error}")),
    }
}

fn predict(name: &str, cached_content: Option<&[u8]>, expected_hash: Option<&Hash>) -> StateReturn {
    let comment = match (cached_content, expected_hash) {
        (None, _) => format!("File will be cached: {name}"),
        (Some(_), None) => format!("No hash found. File will be cached: {name}"),
        (Some(content), Some(hash)) if hash.matches(content) => format!("File already cached: {name}"),
        (Some(_), Some(_)) => format!("Hashes don't match.\nFile will be cached: {name}"),
    };
    StateReturn::predicted(name, comment)
}

/// Checks a local file, which is used where it is.
fn check_local_file(name: &str, path: &str, expected_hash: Option<&Hash>) -> StateReturn {
    let path = Path::new(path);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let report = path.display();
    let Ok(content) = std::fs::read(&path) else {
        return StateReturn::failed(name, format!("File {report} is not present on the minion"));
    };
    match expected_hash {
        None => StateReturn::ok(name, format!("File {report} is present on the minion")),
        Some(hash) if hash.matches(&content) => {
            StateReturn::ok(name, format!("File {report} is present on the minion and has hash {}", hash.hex))
        }
        Some(hash) => {
            let has = hash.digest_of(&content);
            let differs = format!("but the hash ({has}) does not match the specified hash ({})", hash.hex);
            StateReturn::failed(name, format!("File {report} is present on the minion, {differs}"))
        }
    }
}
