//! Files under `salt://` from the master, cached by hash.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::Arc;

use brine_context::{FetchError, FileClient, UpstreamError};
use brine_digest::Digest;
use brine_fileserver::BUFFER_SIZE;
use brine_value::{Map, Value, map};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::channel::Channel;

/// Requests to a file server. They block.
pub trait FileRequests: Send + Sync {
    /// Sends a command with its fields, and returns the reply.
    ///
    /// # Errors
    /// There is no reply.
    fn ask(&self, load: Map) -> Result<Value, UpstreamError>;

    /// Whether this is Brine's file server, whose chunk size is known.
    fn is_brine(&self) -> bool;
}

/// The session with a master.
struct Session {
    channel: Arc<Channel>,
    runtime: Handle,
}

impl FileRequests for Session {
    fn ask(&self, load: Map) -> Result<Value, UpstreamError> {
        Ok(self.runtime.block_on(self.channel.request(load))?)
    }

    fn is_brine(&self) -> bool {
        self.channel.is_brine()
    }
}

/// Files of the master. Small ones are cached in memory as long as their hash is unchanged.
pub struct MasterFiles {
    server: Arc<dyn FileRequests>,
    cache: Mutex<HashMap<String, Vec<u8>>>,
}

/// The maximum size of files cached in memory.
const MAX_CACHED_SIZE: usize = 64 << 10;
/// The maximum number of cached files.
const MAX_CACHED_FILES: usize = 64;
/// The maximum size of a file that is read into memory.
const MAX_SIZE_IN_MEMORY: usize = 1 << 30;

impl MasterFiles {
    /// Creates the client of this session. Its functions block.
    pub fn new(channel: Arc<Channel>, runtime: Handle) -> Self {
        Self::of(Arc::new(Session { channel, runtime }))
    }

    /// Creates the client of another connection to a file server.
    pub fn of(server: Arc<dyn FileRequests>) -> Self {
        MasterFiles { server, cache: Mutex::default() }
    }

    fn ask(&self, load: Map) -> Result<Value, FetchError> {
        Ok(self.server.ask(load)?)
    }

    fn names(&self, cmd: &str, saltenv: &str) -> Result<Vec<String>, FetchError> {
        let answer = self.ask(map! {"cmd" => cmd, "saltenv" => saltenv, "prefix" => ""})?;
        let mut names: Vec<String> = answer.as_list().unwrap_or_default().iter().map(ToString::to_string).collect();
        names.sort();
        Ok(names)
    }

    /// Returns the hash of a file, and the name of its type.
    fn hash_and_kind(&self, path: &str, saltenv: &str) -> Result<Option<(String, String)>, FetchError> {
        let answer = self.ask(map! {"cmd" => "_file_hash", "path" => path, "saltenv" => saltenv})?;
        let field = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        Ok(field("hsum").map(|hash| (hash.to_owned(), field("hash_type").unwrap_or("sha256").to_owned())))
    }

    /// Writes the content of a file with a known hash, chunk by chunk.
    fn stream(
        &self,
        path: &str,
        saltenv: &str,
        hash_and_kind: &(String, String),
        into: &mut dyn Write,
    ) -> Result<(), FetchError> {
        let ask = |loc: u64| -> Result<Vec<u8>, UpstreamError> {
            let load = map! {"cmd" => "_serve_file", "path" => path, "saltenv" => saltenv, "loc" => loc};
            let mut answer = self.server.ask(load)?;
            Ok(match answer.as_map_mut().and_then(|answer| answer.swap_remove("data")) {
                Some(Value::Bytes(data)) => data,
                // A Salt master sends the chunks of text files as strings.
                Some(Value::Str(text)) => text.into_bytes(),
                _ => Vec::new(),
            })
        };
        // Only the chunk size of a Brine master is known.
        let full_size = if self.server.is_brine() { BUFFER_SIZE as usize } else { 1 };
        let mut chunks = FileChunks::new(ask, full_size, into);
        let failed = |error: io::Error| unfinished(path, error);
        let (hash, kind) = hash_and_kind;
        // A Salt master may use a hash type that is unknown here: then the file is not verified.
        let Some(kind) = Digest::named(kind) else {
            return io::copy(&mut chunks, &mut io::sink()).map(|_| ()).map_err(failed);
        };
        if brine_digest::hex(kind.of_reader(&mut chunks).map_err(failed)?) != *hash {
            return Err(FetchError::Changed { path: path.to_owned() });
        }
        Ok(())
    }
}

/// The chunks of a file, requested one after the other.
struct FileChunks<'a, A> {
    ask: A,
    /// The minimum size of every chunk but the last.
    full_size: usize,
    into: &'a mut dyn Write,
    chunk: io::Cursor<Vec<u8>>,
    loc: u64,
    is_last: bool,
}

impl<'a, A: FnMut(u64) -> Result<Vec<u8>, UpstreamError>> FileChunks<'a, A> {
    fn new(ask: A, full_size: usize, into: &'a mut dyn Write) -> Self {
        FileChunks { ask, full_size, into, chunk: io::Cursor::default(), loc: 0, is_last: false }
    }
}

impl<A: FnMut(u64) -> Result<Vec<u8>, UpstreamError>> Read for FileChunks<'_, A> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.chunk.read(buffer)?;
        if read > 0 || self.is_last || buffer.is_empty() {
            return Ok(read);
        }
        let chunk = (self.ask)(self.loc).map_err(io::Error::other)?;
        self.into.write_all(&chunk)?;
        self.loc += chunk.len() as u64;
        self.is_last = chunk.len() < self.full_size;
        self.chunk = io::Cursor::new(chunk);
        self.chunk.read(buffer)
    }
}

/// Returns the error of a file that was not copied to its end.
fn unfinished(path: &str, error: io::Error) -> FetchError {
    let path = path.to_owned();
    if let Some(inner) = error.get_ref()
        && inner.is::<TooLarge>()
    {
        return FetchError::TooLarge { path, limit: MAX_SIZE_IN_MEMORY };
    }
    match error.downcast::<UpstreamError>() {
        Ok(source) => FetchError::Unfinished { path, source },
        Err(source) => FetchError::Write { path, source },
    }
}

/// The error of a [`Bounded`] buffer that is full.
#[derive(Debug, thiserror::Error)]
#[error("it is larger than {MAX_SIZE_IN_MEMORY} bytes")]
struct TooLarge;

/// A buffer of up to [`MAX_SIZE_IN_MEMORY`] bytes.
#[derive(Default)]
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_SIZE_IN_MEMORY {
            return Err(io::Error::other(TooLarge));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileClient for MasterFiles {
    fn read(&self, path: &str, saltenv: &str) -> Result<Option<Vec<u8>>, FetchError> {
        let Some(hash_and_kind) = self.hash_and_kind(path, saltenv)? else { return Ok(None) };
        if let Some(content) = self.cache.lock().get(&hash_and_kind.0) {
            tracing::debug!(saltenv, bytes = content.len(), "salt://{path} is unchanged");
            return Ok(Some(content.clone()));
        }
        let mut content = Bounded::default();
        self.stream(path, saltenv, &hash_and_kind, &mut content)?;
        let content = content.0;
        tracing::debug!(saltenv, bytes = content.len(), "salt://{path} fetched");
        if content.len() <= MAX_CACHED_SIZE {
            let mut cache = self.cache.lock();
            if cache.len() >= MAX_CACHED_FILES {
                cache.clear();
            }
            cache.insert(hash_and_kind.0, content.clone());
        }
        Ok(Some(content))
    }

    fn fetch(&self, path: &str, saltenv: &str, into: &mut dyn Write) -> Result<bool, FetchError> {
        let Some(hash_and_kind) = self.hash_and_kind(path, saltenv)? else { return Ok(false) };
        self.stream(path, saltenv, &hash_and_kind, into)?;
        tracing::debug!(saltenv, hash = hash_and_kind.0, "salt://{path} fetched");
        Ok(true)
    }

    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<String>, FetchError> {
        Ok(self.hash_and_kind(path, saltenv)?.map(|(hash, _)| hash))
    }

    fn mode(&self, path: &str, saltenv: &str) -> Result<Option<u32>, FetchError> {
        let answer = self.ask(map! {"cmd" => "_file_hash_and_stat", "path" => path, "saltenv" => saltenv})?;
        // The reply is the hash and the stat result of the file, its mode first.
        let stat = answer.as_list().and_then(|answer| answer.get(1)).and_then(Value::as_list);
        let mode = stat.and_then(|stat| stat.first()).and_then(Value::as_i64);
        Ok(mode.and_then(|mode| u32::try_from(mode & 0o7777).ok()))
    }

    fn list(&self, saltenv: &str) -> Result<Vec<String>, FetchError> {
        self.names("_file_list", saltenv)
    }

    fn directories(&self, saltenv: &str) -> Result<Vec<String>, FetchError> {
        self.names("_dir_list", saltenv)
    }

    fn empty_directories(&self, saltenv: &str) -> Result<Vec<String>, FetchError> {
        self.names("_file_list_emptydirs", saltenv)
    }

    fn links(&self, saltenv: &str) -> Result<Map, FetchError> {
        let answer = self.ask(map! {"cmd" => "_symlink_list", "saltenv" => saltenv, "prefix" => ""})?;
        Ok(answer.as_map().cloned().unwrap_or_default())
    }

    fn environments(&self) -> Result<Vec<String>, FetchError> {
        self.names("_file_envs", "base")
    }

    fn master_opts(&self) -> Result<Map, FetchError> {
        Ok(self.ask(map! {"cmd" => "_master_opts"})?.as_map().cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file of ten bytes in chunks of this length. Returns the content, and the number of requests.
    fn read(chunk: usize, full_size: usize) -> (Vec<u8>, usize) {
        let file = b"0123456789";
        let (mut asked, mut content) = (0, Vec::new());
        let ask = |loc: u64| {
            asked += 1;
            let rest = &file[loc as usize..];
            Ok(rest[..rest.len().min(chunk)].to_vec())
        };
        let mut hashed = Vec::new();
        FileChunks::new(ask, full_size, &mut content).read_to_end(&mut hashed).unwrap();
        assert_eq!(content, hashed);
        (content, asked)
    }

    #[test]
    fn chunks_of_any_length_are_joined() {
        for (chunk, full_size, requests) in [(3, 1, 5), (10, 1, 2), (5, 1, 3), (4, 4, 3), (5, 5, 3), (20, 20, 1)] {
            assert_eq!(read(chunk, full_size), (b"0123456789".to_vec(), requests), "{chunk} {full_size}");
        }
    }

    #[test]
    fn a_failed_chunk_fails_the_file() {
        let ask = |loc: u64| if loc == 0 { Ok(vec![1]) } else { Err(UpstreamError::Unavailable("no answer".into())) };
        let mut content = Vec::new();
        let error = FileChunks::new(ask, 1, &mut content).read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "no answer");
        let error = unfinished("a", error);
        assert_eq!(error.to_string(), "fetching salt://a failed: no answer");
        assert!(matches!(error, FetchError::Unfinished { source: UpstreamError::Unavailable(_), .. }), "{error:?}");
    }

    #[test]
    fn files_beyond_the_limit_are_told_from_failed_writes() {
        let error = unfinished("a", io::Error::other(TooLarge));
        assert!(matches!(error, FetchError::TooLarge { limit: MAX_SIZE_IN_MEMORY, .. }), "{error:?}");
        let message = "fetching salt://a failed: it is larger than 1073741824 bytes: copy it with cp.get_file";
        assert_eq!(error.to_string(), message);
        let error = unfinished("a", io::ErrorKind::StorageFull.into());
        assert!(matches!(error, FetchError::Write { .. }), "{error:?}");
    }
}
