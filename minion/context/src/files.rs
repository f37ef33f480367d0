//! Files under `salt://`, of this host or a web server.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use brine_fileserver::Roots;
use brine_host::web;
use brine_system::files::read_sized;
use brine_value::Map;

use crate::{Context, FetchError, FileClient};

/// Why the content of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The file server failed.
    #[error(transparent)]
    FileServer(#[from] FetchError),
    /// The web server failed.
    #[error(transparent)]
    Web(#[from] web::FetchError),
    /// The URL is of an unknown kind.
    #[error("sources of this kind are not supported: {0}")]
    Unsupported(String),
}

/// Returns the content of a file under `salt://`, of this host, or of a web server; `None` if it does not exist.
///
/// # Errors
/// A server fails, or does not exist for this kind of URL.
pub fn content(context: &Context, url: &str, saltenv: &str) -> Result<Option<Vec<u8>>, ContentError> {
    content_from(context, url, saltenv, false)
}

/// Reads a file like [`content`]; with `trust_anyone`, without verifying the certificate of a web server.
///
/// # Errors
/// As for [`content`].
pub fn content_from(
    context: &Context,
    url: &str,
    saltenv: &str,
    trust_anyone: bool,
) -> Result<Option<Vec<u8>>, ContentError> {
    match url.split_once("://") {
        Some(("salt", path)) => {
            let (path, saltenv) = in_environment(path, saltenv);
            Ok(context.minion.files.read(path, saltenv)?)
        }
        Some(("http" | "https", _)) => Ok(Some(web::fetch_from(&context.web(), url, trust_anyone)?)),
        Some(("file", path)) => Ok(std::fs::read(path).ok()),
        Some(_) => Err(ContentError::Unsupported(web::redacted(url))),
        None => Ok(std::fs::read(url).ok()),
    }
}

/// Returns a path without `salt://`, and its environment: from its query (`?saltenv=dev`), or the given one.
pub fn in_environment<'a>(path: &'a str, saltenv: &'a str) -> (&'a str, &'a str) {
    let path = path.strip_prefix("salt://").unwrap_or(path).trim_start_matches('/');
    path.split_once("?saltenv=").unwrap_or((path, saltenv))
}

/// Files of this host.
pub struct LocalFiles {
    roots: Roots,
    opts: Map,
}

impl LocalFiles {
    /// Creates a client of files in these directories; `opts` replaces the master's options.
    pub fn new(roots: Roots, opts: Map) -> Self {
        LocalFiles { roots, opts }
    }
}

impl FileClient for LocalFiles {
    fn read(&self, path: &str, saltenv: &str) -> Result<Option<Vec<u8>>, FetchError> {
        let Some(entry) = self.roots.find(path, saltenv) else { return Ok(None) };
        tracing::debug!(saltenv, bytes = entry.metadata.len(), file = %entry.path.display(), "salt://{path} read");
        let read = File::open(&entry.path).and_then(|mut file| read_sized(&mut file, entry.metadata.len()));
        read.map(Some).map_err(|source| FetchError::Read { file: entry.path, source })
    }

    fn fetch(&self, path: &str, saltenv: &str, into: &mut dyn Write) -> Result<bool, FetchError> {
        let Some(entry) = self.roots.find(path, saltenv) else { return Ok(false) };
        let copied = File::open(&entry.path).and_then(|mut file| io::copy(&mut file, into));
        copied.map(|_| true).map_err(|source| FetchError::Read { file: entry.path, source })
    }

    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<String>, FetchError> {
        Ok(self.roots.hash(path, saltenv)?)
    }

    fn mode(&self, path: &str, saltenv: &str) -> Result<Option<u32>, FetchError> {
        Ok(self.roots.find(path, saltenv).map(|entry| entry.metadata.mode() & 0o7777))
    }

    fn list(&self, saltenv: &str) -> Result<Vec<String>, FetchError> {
        Ok(self.roots.file_list(saltenv, ""))
    }

    fn holds(&self, path: &str, saltenv: &str) -> Option<bool> {
        Some(self.roots.find(path, saltenv).is_some())
    }

    fn directories(&self, saltenv: &str) -> Result<Vec<String>, FetchError> {
        Ok(self.roots.dir_list(saltenv, ""))
    }

    fn empty_directories(&self, saltenv: &str) -> Result<Vec<String>, FetchError> {
        Ok(self.roots.empty_dirs(saltenv, ""))
    }

    fn links(&self, saltenv: &str) -> Result<Map, FetchError> {
        let links = self.roots.symlink_list(saltenv, "");
        Ok(links.into_iter().map(|(path, target)| (path.into(), target.into())).collect())
    }

    fn environments(&self) -> Result<Vec<String>, FetchError> {
        Ok(self.roots.envs())
    }

    fn master_opts(&self) -> Result<Map, FetchError> {
        Ok(self.opts.clone())
    }
}

/// Returns the text of a file under `salt://`; `None` if the environment has no such file.
pub fn read_text(files: &dyn FileClient, path: &str, saltenv: &str) -> Result<Option<String>, FetchError> {
    match files.read(path, saltenv)? {
        None => Ok(None),
        Some(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| FetchError::NotText { path: path.to_owned() }),
    }
}
