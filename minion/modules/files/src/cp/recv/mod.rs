//! `cp.recv` and `cp.recv_chunked`: files that `salt-cp` sends from the master's host.

use std::io::{self, Read};
use std::path::Path;

use base64::{Engine, prelude::BASE64_STANDARD};
use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files::{Attributes, Entry, Flush, Links};
use brine_system::user_files;
use brine_value::{Map, Value};
use flate2::read::MultiGzDecoder;

use crate::cp::copies::last_name;

/// Execution functions of `cp`.
pub static FUNCTIONS: Functions<Context> = registry!("cp", [recv, recv_chunked]);

/// The maximum size of a decompressed chunk, in bytes, against decompression bombs.
const CHUNK_MAX: u64 = 64 << 20;

/// Write the files of `salt-cp`, a mapping of paths to contents, to a path or into an existing directory. Returns
/// whether each could be written, by its path here.
///
/// CLI Example:
///
///     salt-cp '*' /etc/motd /etc/motd
#[function]
pub fn recv(
    _context: &Context,
    /// Contents by the paths of the files at the sender.
    files: Map,
    /// Path of the copy.
    dest: String,
) -> CallResult {
    let mut written = Map::new();
    for (path, content) in &files {
        let (path, target) = (path.to_string(), Path::new(&dest));
        let is_directory = target.is_dir();
        // What ends in a slash is a directory, and does not exist.
        let is_name = !dest.ends_with('/');
        let is_writable =
            is_name && (last_name(&path) == last_name(&dest) || target.parent().is_some_and(Path::is_dir));
        let target = match is_directory {
            true => target.join(last_name(&path)),
            false if is_writable => target.to_owned(),
            false => return Ok("Destination unavailable".into()),
        };
        let bytes = content.as_bytes().or_else(|| content.as_str().map(str::as_bytes)).unwrap_or_default();
        let result = user_files::write(&target, bytes);
        if let Err(error) = &result {
            tracing::error!(path = %target.display(), %error, "writing a file of salt-cp failed");
        }
        written.insert(target.display().to_string().into(), result.is_ok().into());
    }
    Ok(written.into())
}

/// Write a chunk of a file of `salt-cp --chunked`: base64, and compressed by gzip unless `compressed` is false. The
/// first one, without `append`, replaces the file and sets its `mode`; missing directories are created. Without a
/// chunk, `dest` is created as a directory. Returns true, or the error.
///
/// CLI Example:
///
///     salt-cp --chunked '*' /srv/site /var/www
#[function]
pub fn recv_chunked(
    context: &Context,
    /// Path of the copy.
    dest: String,
    /// The chunk in base64; none to create a directory.
    chunk: Value,
    /// Whether the chunk is added to the file.
    #[default(false)]
    append: bool,
    /// Whether the chunk is compressed by gzip.
    #[default(true)]
    compressed: bool,
    /// Mode of the file, with the first chunk.
    mode: Option<u32>,
) -> CallResult {
    let result = match chunk {
        Value::Nil => user_files::create_dir_all(&dest),
        chunk => write_chunk(Path::new(&dest), &content(&chunk, compressed)?, append, mode),
    };
    Ok(match result {
        Ok(()) => true.into(),
        Err(error) => {
            context.set_retcode(1);
            error.to_string().into()
        }
    })
}

/// Decodes a chunk: base64, and gzip if it is compressed.
fn content(chunk: &Value, is_compressed: bool) -> Result<Vec<u8>, CallError> {
    let text = chunk.as_bytes().or_else(|| chunk.as_str().map(str::as_bytes)).unwrap_or_default();
    // Python's base64 wraps lines.
    let packed: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let bytes = BASE64_STANDARD.decode(packed).map_err(CallError::execution)?;
    if !is_compressed {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(&bytes[..]).take(CHUNK_MAX + 1).read_to_end(&mut plain);
    let unreadable = |error| CallError::Execution(format!("decompressing a chunk failed: {error}"));
    match read.map_err(unreadable)? as u64 {
        size if size > CHUNK_MAX => Err(CallError::Execution(format!("a chunk is larger than {CHUNK_MAX} bytes"))),
        _ => Ok(plain),
    }
}

fn write_chunk(dest: &Path, content: &[u8], append: bool, mode: Option<u32>) -> io::Result<()> {
    let write = || match (append, mode) {
        (true, _) => user_files::append_bytes(dest, content),
        (false, None) => user_files::write(dest, content),
        (false, Some(mode)) => {
            let entry = Entry::resolve(dest, Links::Follow)?;
            user_files::write_with(entry, content, Attributes::mode(mode & 0o7777), 0o600, Flush::Later)
        }
    };
    match write() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            user_files::create_dir_all(dest.parent().unwrap_or(dest))?;
            write()
        }
        result => result,
    }
}

#[cfg(test)]
mod tests;
