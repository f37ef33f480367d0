//! Files under `salt://`: from the master, cached by hash, or from this host's own folders.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use brine_core::crypt::{Digest, token};
use brine_core::fileserver::{BUFFER_SIZE, Roots};
use brine_core::{Map, Value, map};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::channel::Channel;
use crate::context::{Context, FileClient};

/// The content of a file under `salt://`, of this host, or of a web server; nothing if it is not there.
pub fn content(context: &Context, url: &str, saltenv: &str) -> Result<Option<Vec<u8>>, String> {
    match url.split_once("://") {
        Some(("salt", path)) => {
            let (path, saltenv) = in_environment(path, saltenv);
            context.minion.files.read(path, saltenv)
        }
        Some(("http" | "https", _)) => crate::web::fetch(context, url).map(Some),
        Some(("file", path)) => Ok(std::fs::read(path).ok()),
        Some(_) => Err(format!("sources of this kind are not supported: {url}")),
        None => Ok(std::fs::read(url).ok()),
    }
}

/// A path without `salt://`, and the environment that it is in: what is written behind it (`?saltenv=dev`), or this one.
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
    /// Files in these folders; `opts` stands in for the master's options.
    pub fn new(roots: Roots, opts: Map) -> Self {
        LocalFiles { roots, opts }
    }
}

impl FileClient for LocalFiles {
    fn read(&self, path: &str, saltenv: &str) -> Result<Option<Vec<u8>>, String> {
        let Some(found) = self.roots.find(path, saltenv) else { return Ok(None) };
        std::fs::read(&found.path).map(Some).map_err(|error| format!("{}: {error}", found.path.display()))
    }

    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<String>, String> {
        self.roots.hash(path, saltenv).map_err(|error| error.to_string())
    }

    fn mode(&self, path: &str, saltenv: &str) -> Result<Option<u32>, String> {
        Ok(self.roots.find(path, saltenv).map(|found| found.metadata.mode() & 0o7777))
    }

    fn list(&self, saltenv: &str) -> Result<Vec<String>, String> {
        Ok(self.roots.file_list(saltenv, ""))
    }

    fn holds(&self, path: &str, saltenv: &str) -> Option<bool> {
        Some(self.roots.find(path, saltenv).is_some())
    }

    fn folders(&self, saltenv: &str) -> Result<Vec<String>, String> {
        Ok(self.roots.dir_list(saltenv, ""))
    }

    fn empty_folders(&self, saltenv: &str) -> Result<Vec<String>, String> {
        Ok(self.roots.empty_dirs(saltenv, ""))
    }

    fn links(&self, saltenv: &str) -> Result<Map, String> {
        let links = self.roots.symlink_list(saltenv, "");
        Ok(links.into_iter().map(|(path, target)| (path.into(), target.into())).collect())
    }

    fn environments(&self) -> Result<Vec<String>, String> {
        Ok(self.roots.envs())
    }

    fn master_opts(&self) -> Result<Map, String> {
        Ok(self.opts.clone())
    }
}

/// Files of the master. Small ones that were read before are kept for as long as their hash is the same.
pub struct MasterFiles {
    channel: Arc<Channel>,
    runtime: Handle,
    kept: Mutex<HashMap<String, Vec<u8>>>,
}

/// Files above this size are not kept in memory.
const KEEP: usize = 64 << 10;
/// How many files are kept.
const KEPT: usize = 64;

impl MasterFiles {
    /// Files of the master of this session. Its functions are for threads that may block.
    pub fn new(channel: Arc<Channel>, runtime: Handle) -> Self {
        MasterFiles { channel, runtime, kept: Mutex::default() }
    }

    fn ask(&self, load: Map) -> Result<Value, String> {
        self.runtime.block_on(self.channel.request(load)).map_err(|error| error.to_string())
    }

    fn names(&self, cmd: &str, saltenv: &str) -> Result<Vec<String>, String> {
        let answer = self.ask(map! {"cmd" => cmd, "saltenv" => saltenv, "prefix" => ""})?;
        let mut names: Vec<String> = answer.as_list().unwrap_or_default().iter().map(ToString::to_string).collect();
        names.sort();
        Ok(names)
    }

    /// The hash of a file, and the name of its kind.
    fn hash_and_kind(&self, path: &str, saltenv: &str) -> Result<Option<(String, String)>, String> {
        let answer = self.ask(map! {"cmd" => "_file_hash", "path" => path, "saltenv" => saltenv})?;
        let field = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        Ok(field("hsum").map(|hash| (hash.to_owned(), field("hash_type").unwrap_or("sha256").to_owned())))
    }

    fn fetch(&self, path: &str, saltenv: &str) -> Result<Option<Vec<u8>>, String> {
        let mut content = Vec::new();
        loop {
            let load = map! {"cmd" => "_serve_file", "path" => path, "saltenv" => saltenv, "loc" => content.len()};
            let answer = self.ask(load)?;
            let data = answer.get("data").and_then(Value::as_bytes).unwrap_or_default();
            content.extend_from_slice(data);
            if (data.len() as u64) < BUFFER_SIZE {
                return Ok(Some(content));
            }
        }
    }
}

impl FileClient for MasterFiles {
    fn read(&self, path: &str, saltenv: &str) -> Result<Option<Vec<u8>>, String> {
        let Some((hash, kind)) = self.hash_and_kind(path, saltenv)? else { return Ok(None) };
        if let Some(kept) = self.kept.lock().get(&hash) {
            return Ok(Some(kept.clone()));
        }
        let content = self.fetch(path, saltenv)?;
        if let Some(content) = &content {
            // A master of Salt may have a kind that is not known here: then it cannot be told.
            if Digest::named(&kind).is_some_and(|kind| token::hex(kind.of(content)) != hash) {
                return Err(format!("salt://{path} changed while it was read"));
            }
            if content.len() <= KEEP {
                let mut kept = self.kept.lock();
                if kept.len() >= KEPT {
                    kept.clear();
                }
                kept.insert(hash, content.clone());
            }
        }
        Ok(content)
    }

    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<String>, String> {
        Ok(self.hash_and_kind(path, saltenv)?.map(|(hash, _)| hash))
    }

    fn mode(&self, path: &str, saltenv: &str) -> Result<Option<u32>, String> {
        let answer = self.ask(map! {"cmd" => "_file_hash_and_stat", "path" => path, "saltenv" => saltenv})?;
        // The answer is the hash and what the system knows of the file, its mode first.
        let stat = answer.as_list().and_then(|answer| answer.get(1)).and_then(Value::as_list);
        let mode = stat.and_then(|stat| stat.first()).and_then(Value::as_i64);
        Ok(mode.and_then(|mode| u32::try_from(mode & 0o7777).ok()))
    }

    fn list(&self, saltenv: &str) -> Result<Vec<String>, String> {
        self.names("_file_list", saltenv)
    }

    fn folders(&self, saltenv: &str) -> Result<Vec<String>, String> {
        self.names("_dir_list", saltenv)
    }

    fn empty_folders(&self, saltenv: &str) -> Result<Vec<String>, String> {
        self.names("_file_list_emptydirs", saltenv)
    }

    fn links(&self, saltenv: &str) -> Result<Map, String> {
        let answer = self.ask(map! {"cmd" => "_symlink_list", "saltenv" => saltenv, "prefix" => ""})?;
        Ok(answer.as_map().cloned().unwrap_or_default())
    }

    fn environments(&self) -> Result<Vec<String>, String> {
        self.names("_file_envs", "base")
    }

    fn master_opts(&self) -> Result<Map, String> {
        Ok(self.ask(map! {"cmd" => "_master_opts"})?.as_map().cloned().unwrap_or_default())
    }
}
