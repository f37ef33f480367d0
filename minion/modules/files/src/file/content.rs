//! Reads, writes and searches the content of files.

use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_host::paths::expand;
use brine_system::user_files;
use brine_text::glob::fnmatch;
use brine_text::python_regex::Regex;
use brine_value::{Map, Value};

use super::changes::write_to_links;
use super::error_at;

/// Write lines to a file, replacing its content.
///
/// CLI Example:
///
///     salt '*' file.write /etc/motd "With all thine offerings thou shalt offer salt."
#[function]
pub fn write(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Lines.
    #[rest]
    args: Vec<Value>,
    /// `args`: the lines as a list, instead.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let lines = lines(&args, &kwargs);
    write_to_links(&expand(&path), lines.concat().as_bytes()).map_err(|error| error_at(&path, &error))?;
    Ok(format!("Wrote {} lines to \"{path}\"", lines.len()).into())
}

/// Append lines to a file.
///
/// CLI Example:
///
///     salt '*' file.append /etc/motd "With all thine offerings thou shalt offer salt."
#[function]
pub fn append(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Lines.
    #[rest]
    args: Vec<Value>,
    /// `args`: the lines as a list, instead.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let lines = lines(&args, &kwargs);
    let file = expand(&path);
    file.metadata()
        .and_then(|_| user_files::append(&file, lines.concat().as_bytes()))
        .map_err(|error| error_at(&path, &error))?;
    Ok(format!("Wrote {} lines to \"{path}\"", lines.len()).into())
}

/// Prepend lines to a file.
///
/// CLI Example:
///
///     salt '*' file.prepend /etc/motd "With all thine offerings thou shalt offer salt."
#[function]
pub fn prepend(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Lines.
    #[rest]
    args: Vec<Value>,
    /// `args`: the lines as a list, instead.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let lines = lines(&args, &kwargs);
    let file = expand(&path);
    let before = match user_files::read(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        before => before.map_err(|error| error_at(&path, &error))?,
    };
    let text = [lines.concat().into_bytes(), before].concat();
    write_to_links(&file, &text).map_err(|error| error_at(&path, &error))?;
    Ok(format!("Prepended {} lines to \"{path}\"", lines.len()).into())
}

/// Read a number of bytes of a file from an offset.
///
/// CLI Example:
///
///     salt '*' file.seek_read /path/to/file 4096 0
#[function]
pub fn seek_read(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Number of bytes.
    size: u64,
    /// Place in the file, in bytes.
    offset: u64,
) -> CallResult {
    let mut data = Vec::new();
    let read = std::fs::File::open(expand(&path)).and_then(|mut file| {
        file.seek(SeekFrom::Start(offset))?;
        file.take(size).read_to_end(&mut data)
    });
    read.map_err(|error| error_at(&path, &error))?;
    // A string if it is valid UTF-8, as in Salt.
    Ok(String::from_utf8(data).map_or_else(|error| error.into_bytes().into(), Value::from))
}

/// Write data into an existing file at an offset, and return the number of bytes.
///
/// CLI Example:
///
///     salt '*' file.seek_write /path/to/file 'some data' 4096
#[function]
pub fn seek_write(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Text to write.
    data: Value,
    /// Place in the file, in bytes.
    offset: u64,
) -> CallResult {
    let data = data.as_bytes().map_or_else(|| data.to_string().into_bytes(), <[u8]>::to_vec);
    let written = user_files::open_in_place(expand(&path)).and_then(|mut file| {
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(&data)?;
        file.sync_all()
    });
    written.map_err(|error| error_at(&path, &error))?;
    Ok(data.len().into())
}

/// Truncate a file to a length in bytes.
///
/// CLI Example:
///
///     salt '*' file.truncate /path/to/file 512
#[function]
pub fn truncate(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// New length in bytes.
    length: u64,
) -> CallResult {
    let cut = user_files::open_in_place(expand(&path)).and_then(|file| file.set_len(length));
    cut.map_err(|error| error_at(&path, &error))?;
    Ok(Value::Nil)
}

/// Return the content of a file.
///
/// CLI Example:
///
///     salt '*' file.read /path/to/file
#[function]
pub fn read(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Whether the content is returned as bytes.
    #[default(false)]
    binary: bool,
) -> CallResult {
    let bytes = std::fs::read(expand(&path)).map_err(|error| error_at(&path, &error))?;
    Ok(if binary { bytes.into() } else { String::from_utf8_lossy(&bytes).into_owned().into() })
}

/// Return whether a glob (`*`, `?` and `[]`) matches the whole content of a file.
///
/// CLI Example:
///
///     salt '*' file.contains_glob /etc/foobar '*cheese*'
#[function]
pub fn contains_glob(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Glob of a line.
    glob_expr: String,
) -> CallResult {
    let have = std::fs::read(expand(&path)).unwrap_or_default();
    Ok((!have.is_empty() && fnmatch(&glob_expr, &String::from_utf8_lossy(&have))).into())
}

/// Return whether a string occurs in a file.
///
/// CLI Example:
///
///     salt '*' file.contains /etc/crontab 'mymaintenance.sh'
#[function]
pub fn contains(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Text to search for.
    text: String,
) -> CallResult {
    let have = std::fs::read(expand(&path)).unwrap_or_default();
    Ok(String::from_utf8_lossy(&have).contains(text.trim()).into())
}

/// Return whether a regular expression matches a line of a file, after the characters of `lchar` are stripped.
///
/// CLI Example:
///
///     salt '*' file.contains_regex /etc/crontab '^@daily'
#[function]
pub fn contains_regex(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Regular expression.
    regex: String,
    /// Characters that are stripped at the start of each line.
    #[default]
    lchar: String,
) -> CallResult {
    let regex = Regex::new(&regex).map_err(CallError::execution)?;
    let have = std::fs::read(expand(&path)).unwrap_or_default();
    for line in String::from_utf8_lossy(&have).split_inclusive('\n') {
        if regex.is_match(line.trim_start_matches(|c| lchar.contains(c))).map_err(CallError::execution)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

/// Returns the lines to write, each with a newline: the keyword argument `args`, or else the positional arguments.
fn lines(args: &[Value], kwargs: &Map) -> Vec<String> {
    let lines = match kwargs.get("args") {
        Some(Value::List(lines)) => lines,
        Some(line) => std::slice::from_ref(line),
        None => args,
    };
    lines.iter().map(|line| format!("{line}\n")).collect()
}
