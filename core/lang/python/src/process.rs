//! One Python process: its start, its connection, and its end.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use brine_system::processes;
use brine_value::msgpack::{self, Budget};
use brine_value::{Map, Value};
use parking_lot::Mutex;

use crate::{PythonError, Settings};

/// The maximum size of a frame, in bytes.
const MAX_BYTES: usize = 64 << 20;
/// The maximum number of concurrent calls in a process.
const MAX_CALLS: usize = 4096;
/// The maximum length of a logged line of standard output or error, in bytes.
const MAX_LINE: u64 = 8192;
/// The timeout of sending to a process that does not read.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

const START: &str = include_str!("program/start.py");
const PROGRAM: [(&str, &str); 10] = [
    ("brine_wire", include_str!("program/wire.py")),
    ("brine_events", include_str!("program/events.py")),
    ("brine_shim", include_str!("program/shim.py")),
    ("brine_renderers", include_str!("program/renderers.py")),
    ("brine_pyobjects", include_str!("program/pyobjects.py")),
    ("brine_pydsl", include_str!("program/pydsl.py")),
    ("brine_function_tokens", include_str!("program/function_tokens.py")),
    ("brine_loader", include_str!("program/loader.py")),
    ("brine_fallback", include_str!("program/fallback.py")),
    ("brine_main", include_str!("program/main.py")),
];

/// The sender of the frames for one call, and finally of the reason why there are no more.
pub type Frames = Sender<Result<Map, String>>;

/// The state of a process: its running calls and leases.
#[derive(Default)]
struct Open {
    calls: HashMap<u64, Frames>,
    /// The number of leases on the process.
    leases: usize,
    /// Whether no more calls are accepted.
    is_retired: bool,
    /// The reason why the process ended, once it has.
    ended: Option<String>,
}

/// A running process.
pub struct Process {
    writer: Mutex<UnixStream>,
    child: Mutex<Child>,
    open: Mutex<Open>,
}

impl Open {
    fn is_unused(&self) -> bool {
        self.calls.is_empty() && self.leases == 0
    }
}

impl Process {
    /// Starts a process, and sends the program to it.
    pub fn start(settings: &Settings) -> Result<Arc<Self>, PythonError> {
        let missing =
            |reason: String| PythonError::NoPython { interpreter: settings.interpreter.display().to_string(), reason };
        let program = processes::find(&settings.interpreter).ok_or_else(|| missing("is not installed".into()))?;
        let broken = |error: io::Error| missing(format!("does not start: {error}"));
        let (own, other) = UnixStream::pair().map_err(broken)?;
        own.set_write_timeout(Some(SEND_TIMEOUT)).map_err(broken)?;
        own.set_read_timeout(Some(settings.idle)).map_err(broken)?;
        let mut command = Command::new(program);
        command.args(["-I", "-c", START]).stdin(Stdio::from(OwnedFd::from(other)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = processes::start(&mut command).map_err(broken)?;
        // The command holds the other end of the connection open: with it, the end of the process would not be noticed.
        drop(command);
        log_lines("stdout", child.stdout.take()).map_err(broken)?;
        log_lines("stderr", child.stderr.take()).map_err(broken)?;
        tracing::debug!(pid = child.id(), interpreter = %settings.interpreter.display(), "Python started");
        let reader = own.try_clone().map_err(broken)?;
        let process = Arc::new(Process { writer: Mutex::new(own), child: Mutex::new(child), open: Mutex::default() });
        let mut program = (PROGRAM.len() as u32).to_be_bytes().to_vec();
        for text in PROGRAM.iter().flat_map(|(name, source)| [name, source]) {
            program.extend((text.len() as u32).to_be_bytes());
            program.extend(text.as_bytes());
        }
        // If the process has already ended, its standard error contains the reason.
        _ = process.writer.lock().write_all(&program);
        let reading = Arc::clone(&process);
        std::thread::Builder::new().name("python".into()).spawn(move || reading.read(reader)).map_err(broken)?;
        Ok(process)
    }

    /// Registers a call. Returns false if the process accepts no more calls.
    pub fn register(&self, id: u64, frames: Frames) -> Result<bool, PythonError> {
        self.register_if(id, frames, |open| !open.is_retired)
    }

    /// As [`Process::register`], but also succeeds if the process is retired: for the holder of a lease.
    pub fn register_leased(&self, id: u64, frames: Frames) -> Result<bool, PythonError> {
        self.register_if(id, frames, |_| true)
    }

    fn register_if(&self, id: u64, frames: Frames, may: impl FnOnce(&Open) -> bool) -> Result<bool, PythonError> {
        let mut open = self.open.lock();
        if open.ended.is_some() || !may(&open) {
            return Ok(false);
        }
        if open.calls.len() >= MAX_CALLS {
            return Err(PythonError::Limit(format!("{MAX_CALLS} calls are running already")));
        }
        open.calls.insert(id, frames);
        Ok(true)
    }

    /// Whether the process accepts calls.
    pub fn is_open(&self) -> bool {
        let open = self.open.lock();
        !open.is_retired && open.ended.is_none()
    }

    /// Removes a call. A retired process ends when its last call is removed and its last lease released.
    pub fn remove(&self, id: u64) {
        let mut open = self.open.lock();
        open.calls.remove(&id);
        if open.is_retired && open.is_unused() {
            self.close();
        }
    }

    /// Makes the process refuse further calls. It ends when its running calls and leases have ended.
    pub fn retire(&self) {
        let mut open = self.open.lock();
        open.is_retired = true;
        if open.is_unused() {
            self.close();
        }
    }

    /// Adds a lease, which keeps the process alive without calls, until [`Process::release`].
    pub fn lease(&self) {
        self.open.lock().leases += 1;
    }

    /// Releases a lease.
    pub fn release(&self) {
        let mut open = self.open.lock();
        open.leases = open.leases.saturating_sub(1);
        if open.is_retired && open.is_unused() {
            self.close();
        }
    }

    /// Sends a frame. Kills the process if it does not read it within the timeout.
    pub fn send(&self, frame: &Map) -> Result<(), PythonError> {
        let packed = msgpack::pack_map(frame);
        if packed.len() > MAX_BYTES {
            let message = format!("the arguments take {} bytes, at most {MAX_BYTES} can be sent", packed.len());
            return Err(PythonError::Limit(message));
        }
        let mut bytes = (packed.len() as u32).to_be_bytes().to_vec();
        bytes.extend(packed);
        let sent = self.writer.lock().write_all(&bytes);
        sent.map_err(|error| {
            self.close();
            let ended = self.open.lock().ended.clone();
            PythonError::Ended(ended.unwrap_or_else(|| format!("sending failed: {error}")))
        })
    }

    fn close(&self) {
        // The reader notices the end, whether this or another cause ends the process.
        _ = self.child.lock().kill();
    }

    fn read(&self, mut connection: UnixStream) {
        // After a panic, calls must not wait for ever.
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.read_frames(&mut connection)));
        let reason = read.unwrap_or_else(|_| {
            tracing::error!("the reader of Python's answers panicked: this is a defect, please report it");
            Some("the reader of its answers panicked".to_owned())
        });
        _ = connection.shutdown(Shutdown::Both);
        self.close();
        let status = self.child.lock().wait();
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let reason = reason.unwrap_or(status);
        tracing::debug!(reason, "Python ended");
        let mut open = self.open.lock();
        for (_, frames) in open.calls.drain() {
            _ = frames.send(Err(reason.clone()));
        }
        open.ended = Some(reason);
    }

    /// Takes frames until the connection ends. Returns the error, if there is one.
    fn read_frames(&self, connection: &mut UnixStream) -> Option<String> {
        loop {
            match next_frame(connection, || self.is_idle()) {
                Ok(Some(frame)) => self.take(frame),
                Ok(None) => return None,
                Err(error) => return Some(error.to_string()),
            }
        }
    }

    /// Retires the process if it has no calls and leases. Returns whether that is so.
    fn is_idle(&self) -> bool {
        let mut open = self.open.lock();
        open.is_retired |= open.is_unused();
        open.is_unused()
    }

    fn take(&self, frame: Map) {
        let field = |name: &str| frame.get(name).map(ToString::to_string).unwrap_or_default();
        if field("op") == "log" {
            let (name, message) = (field("name"), field("message"));
            match field("level").as_str() {
                "critical" | "error" => tracing::error!(module = name, "Python: {message}"),
                "warning" => tracing::warn!(module = name, "Python: {message}"),
                "info" => tracing::info!(module = name, "Python: {message}"),
                _ => tracing::debug!(module = name, "Python: {message}"),
            }
            return;
        }
        let id = frame.get("id").and_then(Value::as_i64).unwrap_or_default().unsigned_abs();
        let frames = self.open.lock().calls.get(&id).cloned();
        // A cancelled call may still answer.
        _ = frames.map(|frames| frames.send(Ok(frame)));
    }
}

/// Reads a frame; `None` at the end of the connection, or when the read times out and the process is idle.
fn next_frame(connection: &mut UnixStream, is_idle: impl Fn() -> bool) -> io::Result<Option<Map>> {
    let mut head = [0; 4];
    if !fill(connection, &mut head, &is_idle)? {
        return Ok(None);
    }
    let length = u32::from_be_bytes(head) as usize;
    if length > MAX_BYTES {
        return Err(io::Error::other(format!("Python sent a frame of {length} bytes, at most {MAX_BYTES} are read")));
    }
    let mut data = Vec::new();
    while data.len() < length {
        // Memory grows with the bytes that arrive, not with the announced length.
        let start = data.len();
        data.resize((start + (1 << 16)).min(length), 0);
        if !fill(connection, &mut data[start..], &|| false)? {
            return Ok(None);
        }
    }
    msgpack::unpack_map_within(&data, Budget::TRUSTED).map(Some).map_err(io::Error::other)
}

fn fill(connection: &mut UnixStream, buffer: &mut [u8], is_idle: &impl Fn() -> bool) -> io::Result<bool> {
    let mut at = 0;
    while at < buffer.len() {
        match connection.read(&mut buffer[at..]) {
            Ok(0) => return Ok(false),
            Ok(count) => at += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if at == 0 && is_idle() {
                    return Ok(false);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Logs the output of a process line by line, from a new thread.
fn log_lines(stream: &'static str, pipe: Option<impl Read + Send + 'static>) -> io::Result<()> {
    let Some(pipe) = pipe else { return Ok(()) };
    let name = format!("python-{stream}");
    let log = move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            tracing::info!(stream, "Python: {}", String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    };
    std::thread::Builder::new().name(name).spawn(log).map(drop)
}
