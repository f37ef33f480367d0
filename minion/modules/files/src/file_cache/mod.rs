//! The file cache of this host, below `cachedir`: its paths, and the fetching of files.
//!
//! `files` contains files of the file server, `extrn_files` files of web servers, both by environment; `localfiles`
//! contains files of this host.

use std::path::{Path, PathBuf};

use brine_context::files::in_environment;
use brine_context::{Context, FetchError};
use brine_host::web::{self, Fetched};
use brine_system::files::{self, Attributes, Draft, Entry, Flush, Links};
use brine_system::user_files;

use crate::checksum::{digest, hash_kind, hex_digest};

/// Options for fetching a file from a web server.
#[derive(Debug, Clone, Default)]
pub struct Remote {
    /// Expected hash in hex, with or without its type: a copy with this hash is not fetched again.
    pub hash: Option<String>,
    /// Whether the server's certificate is not verified.
    pub trust_anyone: bool,
    /// Whether the request carries the ETag of the last response.
    pub use_etag: bool,
}

/// Maximum length of the path and query of a URL in the cache, in bytes; longer ones are replaced by their SHA-256
/// hash.
const MAX_CACHE_NAME: usize = 255;

/// Returns the cache path of a file, whether it exists or not, or `None` for a name that leads out of the cache.
pub fn path_of(cachedir: &Path, url: &str, saltenv: &str) -> Option<PathBuf> {
    match url.split_once("://") {
        Some(("salt", path)) => {
            let (path, saltenv) = in_environment(path, saltenv);
            server_path(cachedir, path, saltenv)
        }
        Some(_) => external(cachedir, url, saltenv),
        None => local_path(cachedir, url),
    }
}

fn server_path(cachedir: &Path, path: &str, saltenv: &str) -> Option<PathBuf> {
    let path = files::relative_path(path.trim_start_matches(['|', '/']))?;
    Some(cachedir.join("files").join(files::relative_path(saltenv)?).join(path))
}

fn local_path(cachedir: &Path, path: &str) -> Option<PathBuf> {
    Some(cachedir.join("localfiles").join(files::relative_path(path.trim_start_matches(['|', '/']))?))
}

/// Returns the cache path for the URL of a web server. Credentials and the fragment are omitted; a query is appended to
/// the path after a `-`.
pub fn external(cachedir: &Path, url: &str, saltenv: &str) -> Option<PathBuf> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or(host);
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let host = if has_port { host.replace(':', "") } else { host.to_owned() };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut name = if query.is_empty() { path.to_owned() } else { format!("{path}-{query}") };
    if name.len() > MAX_CACHE_NAME {
        name = hex_digest(name.as_bytes(), "sha256").ok()?;
    }
    let below = files::relative_path(&format!("{saltenv}/{host}/{}", name.trim_start_matches('/')))?;
    Some(cachedir.join("extrn_files").join(below))
}

/// Returns the cached copy of a file.
pub fn found(cachedir: &Path, url: &str, saltenv: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("salt://").unwrap_or(url);
    let (path, saltenv) = in_environment(path, saltenv);
    let candidates =
        [server_path(cachedir, path, saltenv), local_path(cachedir, path), external(cachedir, url, saltenv)];
    candidates.into_iter().flatten().find(|path| path.exists())
}

/// Fetches a file if necessary and returns its local path; a local file is returned as it is. Returns `None` if the
/// file server has no such file.
pub fn cache(context: &Context, url: &str, saltenv: &str, remote: &Remote) -> Result<Option<PathBuf>, String> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    let leads_out = || format!("{url} does not name a file below its root");
    let path = || path_of(&context.config().cachedir, url, saltenv).ok_or_else(leads_out);
    match scheme {
        None | Some("file") => {
            let path = url.strip_prefix("file://").unwrap_or(url);
            let path = Some(PathBuf::from(path)).filter(|path| path.is_absolute());
            path.ok_or_else(|| format!("Path '{url}' is not absolute")).map(Some)
        }
        Some("salt") => Ok(if fetch(context, url, saltenv, &path()?)? { Some(path()?) } else { None }),
        Some("http" | "https") => {
            let target = path()?;
            fetch_remote(context, url, &target, remote)?;
            Ok(Some(target))
        }
        Some(_) => Err(format!("Unsupported url scheme: {url}")),
    }
}

/// Fetches a file of the file server into the cache, unless its copy is current. Returns whether the server has it.
fn fetch(context: &Context, url: &str, saltenv: &str, target: &Path) -> Result<bool, String> {
    let (path, saltenv) = in_environment(url, saltenv);
    let client = &context.minion.files;
    let unfetched = |error: FetchError| error.to_string();
    let Some(hash) = client.hash(path, saltenv).map_err(unfetched)? else { return Ok(false) };
    if is_current(target, &hash) {
        return Ok(true);
    }
    make_room(target)?;
    let failed = |error| format!("writing {} failed: {error}", target.display());
    let mut draft = Entry::resolve(target, Links::Keep).and_then(Draft::create).map_err(failed)?;
    if !client.fetch(path, saltenv, &mut draft.file).map_err(unfetched)? {
        return Ok(false);
    }
    draft.finish(Attributes::mode(0o600), Flush::Later).map(|()| true).map_err(failed)
}

/// Whether a file has a hash.
pub fn is_current(path: &Path, hash: &str) -> bool {
    let hex = hash.rsplit(['=', ':']).next().unwrap_or(hash).trim();
    let Some(kind) = hash_kind(hex) else { return false };
    digest(path, kind).is_ok_and(|have| have.eq_ignore_ascii_case(hex))
}

fn fetch_remote(context: &Context, url: &str, path: &Path, remote: &Remote) -> Result<(), String> {
    if remote.hash.as_ref().is_some_and(|hash| is_current(path, hash)) {
        return Ok(());
    }
    // The ETag is stored next to the copy.
    let mut etag_path = path.as_os_str().to_owned();
    etag_path.push(".etag");
    let etag_path = PathBuf::from(etag_path);
    let stored_etag = || std::fs::read_to_string(&etag_path).ok().filter(|_| remote.use_etag && path.exists());
    let etag = stored_etag().map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty());
    make_room(path)?;
    let failed = |error| format!("writing {} failed: {error}", path.display());
    let mut draft = Entry::resolve(path, Links::Keep).and_then(Draft::create).map_err(failed)?;
    let fetched = web::fetch_into(&context.web(), url, remote.trust_anyone, etag.as_deref(), &mut draft.file);
    let Fetched::Whole { etag } = fetched.map_err(|error| error.to_string())? else { return Ok(()) };
    draft.finish(Attributes::mode(0o600), Flush::Later).map_err(failed)?;
    match etag.filter(|_| remote.use_etag) {
        Some(etag) => store(&etag_path, etag.as_bytes()),
        // A stale ETag would make the next response "not modified".
        None => match user_files::remove_file(&etag_path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("Failed to remove {}: {error}", etag_path.display()))
            }
            _ => Ok(()),
        },
    }
}

/// Writes a copy into the cache, readable by its owner alone. A directory in its place is replaced by the file, and
/// the reverse, as in the source.
pub fn store(path: &Path, content: &[u8]) -> Result<(), String> {
    make_room(path)?;
    files::write_soon(path, content, 0o600).map_err(|error| error.to_string())
}

/// Creates the directory of a copy, and removes anything of another type at its path or at that of the directory.
fn make_room(path: &Path) -> Result<(), String> {
    let directory = path.parent().unwrap_or(path);
    if directory.is_file() {
        user_files::remove_file(directory)
            .map_err(|error| format!("Failed to remove {}: {error}", directory.display()))?;
    }
    if path.is_dir() {
        user_files::remove_dir_all(path).map_err(|error| format!("Failed to remove {}: {error}", path.display()))?;
    }
    files::create_private_dir(directory).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
