//! Salt's own Python clients (`salt.utils.event`, and so `LocalClient`) on the event sockets. They do not speak ZeroMQ.
//!
//! An event is a msgpack mapping with the keys `head` and `body`; `body` contains the bytes that ZeroMQ peers exchange.
//! Late releases of Salt put the length of the mapping in front, in four bytes: clients of all of them when they send
//! events, but only those of 3006 expect it as subscribers. A subscriber sends nothing that identifies its release, so
//! the release is read from the files of its process.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_event::Event;
use brine_runtime::executors::Executor;
use brine_value::msgpack::{self, UnpackError};
use brine_zmtp::{ForeignStream, SilenceTimeout, TransportError};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::publish_received;
use crate::{Bus, Filter, Subscription};

/// The time after which a silent subscriber is treated as a Salt client instead of a ZeroMQ peer: if Salt is installed
/// for its Python process, and otherwise.
const SALT_SILENCE: Duration = Duration::from_millis(100);
const SILENCE: Duration = Duration::from_secs(1);
/// The maximum overhead of an encoded event beyond its body: keys, an empty head, headers.
const MAX_OVERHEAD: usize = 64;
/// The maximum number of bytes read from a file about the peer's process.
const MAX_READ: u64 = 1 << 20;
/// The maximum number of entries read from a directory of libraries.
const MAX_ENTRIES: usize = 4096;
/// The first byte of a ZeroMQ greeting.
const GREETING: u8 = 0xff;

/// Publishes the events of a client until it closes the connection.
pub(crate) async fn receive(bus: Bus, peer: ForeignStream) -> Result<(), TransportError> {
    let limit = bus.inner.limits.event;
    let (mut stream, mut buffer) = (peer.stream, peer.received);
    loop {
        while let Some(event) = next_event(&mut buffer, limit)? {
            publish_received(bus.clone(), vec![event]).await;
        }
        if stream.read_buf(&mut buffer).await.map_err(|_| TransportError::Closed)? == 0 {
            return Err(TransportError::Closed);
        }
    }
}

/// Removes the next event from the buffer and returns it, if it has arrived completely.
fn next_event(buffer: &mut BytesMut, limit: usize) -> Result<Option<Bytes>, TransportError> {
    let Some(first) = buffer.first() else { return Ok(None) };
    // The first byte of a mapping is greater than that of any permitted length.
    let (skip, length) = if *first < 0x80 {
        let Some(length) = buffer.first_chunk::<4>() else { return Ok(None) };
        (4, Some(u32::from_be_bytes(*length) as usize))
    } else {
        (0, None)
    };
    let bounded = |size: usize| {
        let is_bounded = size <= limit.saturating_add(MAX_OVERHEAD);
        is_bounded.then_some(()).ok_or(TransportError::TooLarge { size: size as u64, limit })
    };
    bounded(length.unwrap_or_default())?;
    let mut body = None;
    let length = match length {
        Some(length) if buffer.len() < skip + length => return Ok(None),
        Some(length) => {
            msgpack::scan(&buffer[skip..skip + length], |entry| keep_body(&mut body, entry)).map_err(malformed)?;
            length
        }
        // The mapping ends where the scan stops.
        None => match msgpack::scan(buffer, |entry| keep_body(&mut body, entry)) {
            Ok(_) => buffer.len(),
            Err(UnpackError::Trailing(rest)) => buffer.len() - rest,
            Err(UnpackError::Truncated(_)) => return bounded(buffer.len()).map(|()| None),
            Err(error) => return Err(malformed(error)),
        },
    };
    let body = body.map(Bytes::copy_from_slice).ok_or(TransportError::Malformed("a message has no 'body'"))?;
    buffer.advance(skip + length);
    Ok(Some(body))
}

fn keep_body<'a>(body: &mut Option<&'a [u8]>, entry: msgpack::Entry<'a>) {
    if entry.key == Some("body") {
        *body = msgpack::content(entry.value);
    }
}

fn malformed(_: UnpackError) -> TransportError {
    TransportError::Malformed("a message is neither ZeroMQ's nor Salt's")
}

/// Sends events to a subscriber until it closes the connection.
pub(crate) async fn follow(
    mut subscription: Subscription,
    process: Option<i32>,
    peer: ForeignStream,
    files: &Executor,
) -> Result<(), TransportError> {
    let with_length = match process {
        Some(process) => files.run(move |_| expects_length(process)).await.unwrap_or_default(),
        None => false,
    };
    subscription.set_filter(Filter::Prefixes(vec![Bytes::new()]));
    let (mut read, mut write) = peer.stream.into_split();
    let mut ignored = [0; 256];
    let mut out = BytesMut::new();
    loop {
        tokio::select! {
            // Subscribers send nothing.
            read = read.read(&mut ignored) => match read {
                Ok(1..) if ignored[0] == GREETING => {
                    return Err(TransportError::Handshake("its greeting came too late: it connects again"));
                }
                Ok(1..) => {}
                Ok(0) | Err(_) => return Err(TransportError::Closed),
            },
            events = subscription.recv_many() => {
                let Some(events) = events else { return Ok(()) };
                out.clear();
                for event in &events {
                    put_event(&mut out, event, with_length);
                }
                write.write_all(&out).await.map_err(|_| TransportError::Closed)?;
            }
        }
    }
}

/// Returns the length of an event, which is limited to far less.
fn length(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn put_event(out: &mut BytesMut, event: &Event, with_length: bool) {
    const START: &[u8] = b"\x82\xa4head\x80\xa4body\xc6";
    let frame = event.frame();
    if with_length {
        out.put_u32(length(START.len() + 4 + frame.len()));
    }
    out.put_slice(START);
    out.put_u32(length(frame.len()));
    out.put_slice(frame);
}

/// Returns the time for which a silent subscriber may still be a ZeroMQ peer.
pub(crate) async fn silence_timeout(process: Option<i32>, files: &Executor) -> SilenceTimeout {
    let has_salt = match process {
        Some(process) => files.run(move |_| salt_package_dir(process).is_some()).await.unwrap_or_default(),
        None => false,
    };
    SilenceTimeout::After(if has_salt { SALT_SILENCE } else { SILENCE })
}

/// Whether the process expects events with their length in front: late releases of Salt 3006.
fn expects_length(process: i32) -> bool {
    let Some(salt) = salt_package_dir(process) else { return false };
    let is_3006 = read(&salt.join("_version.txt")).is_some_and(|version| version.starts_with("3006"));
    is_3006 && read(&salt.join("transport/frame.py")).is_some_and(|text| text.contains("def frame_msg_ipc"))
}

/// Returns the directory of the package `salt` of a Python process: beside the compiled modules that the process has
/// loaded, or else that of its interpreter. The first is closed to a master without the capabilities of the process.
fn salt_package_dir(process: i32) -> Option<PathBuf> {
    let loaded = read(Path::new(&format!("/proc/{process}/maps"))).unwrap_or_default();
    package_of_modules(&loaded, Path::new(&format!("/proc/{process}/root"))).or_else(|| {
        let command = read(Path::new(&format!("/proc/{process}/cmdline")))?;
        let interpreter = command.split(['\0', ' ']).next()?;
        package_of_interpreter(Path::new(interpreter))
    })
}

/// Returns the package beside the modules in a table of mapped files; `root` is the root directory of the process.
fn package_of_modules(maps: &str, root: &Path) -> Option<PathBuf> {
    let mut seen = Vec::new();
    for line in maps.lines() {
        let Some(path) = line.find('/').map(|start| &line[start..]) else { continue };
        let Some(end) =
            ["/site-packages/", "/dist-packages/"].iter().find_map(|name| Some(path.find(name)? + name.len()))
        else {
            continue;
        };
        let packages = &path[..end];
        if !seen.contains(&packages) {
            seen.push(packages);
            let salt = root.join(packages.trim_start_matches('/')).join("salt");
            if salt.join("transport").is_dir() {
                return Some(salt);
            }
        }
    }
    None
}

/// Returns the package that an interpreter imports: from the directories of packages below its prefix, and below
/// `/usr/local` as Debian has it.
fn package_of_interpreter(interpreter: &Path) -> Option<PathBuf> {
    let prefix = interpreter.parent().filter(|bin| bin.is_absolute() && bin.ends_with("bin"))?.parent()?;
    for prefix in [prefix, &prefix.join("local")] {
        for lib in std::fs::read_dir(prefix.join("lib")).into_iter().flatten().take(MAX_ENTRIES).flatten() {
            if !lib.file_name().as_encoded_bytes().starts_with(b"python") {
                continue;
            }
            for packages in ["site-packages", "dist-packages"] {
                let salt = lib.path().join(packages).join("salt");
                if salt.join("transport").is_dir() {
                    return Some(salt);
                }
            }
        }
    }
    None
}

/// Reads the beginning of a file, without blocking on a pipe that the peer may have put in its place.
fn read(path: &Path) -> Option<String> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::File::options();
    let file = options.read(true).custom_flags(O_NONBLOCK).open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_READ).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The value of the flag on Linux.
const O_NONBLOCK: i32 = 0o4000;

#[cfg(test)]
mod tests;
