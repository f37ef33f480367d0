//! The queue of state runs on this host: one at a time, in the order in which they ask, in any process.
//!
//! A run has a ticket: a numbered file in `state_queue/` of the cache, which the run keeps locked (`flock`). A run may
//! begin when no ticket with a smaller number is locked. The numbers are given under a lock of their own, so that of any
//! two runs one sees the other, whatever their job ids and the time at which they begin. The kernel releases the lock of
//! a killed process: its ticket is then removed by the next run.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use brine_system::files::{self, FileError};
use brine_value::{FromValue, Map, Value, map, msgpack};
use parking_lot::Mutex;

/// The file whose lock is held while a number is given.
const LOCK: &str = "lock";
/// The deadline for that lock, which is held for some file operations: a stopped process may hold it for longer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The ticket of a job's state run. The runs inside of a run, as by `module.run`, share it.
pub type JobTicket = Arc<Mutex<Weak<Ticket>>>;

/// The reason why the queue cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateQueueError {
    /// A file of the queue cannot be created, read or locked.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another process holds the lock.
    #[error("locking {0} failed: another process holds the lock for more than {n} seconds", n = LOCK_TIMEOUT.as_secs())]
    Locked(PathBuf),
}

/// A state run, running or waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedRun {
    /// The job id.
    pub jid: String,
    /// The function, or the functions.
    pub fun: String,
    /// The process.
    pub pid: u32,
}

/// The place of a state run in the queue, until it is dropped.
#[derive(Debug)]
pub struct Ticket {
    path: PathBuf,
    number: u64,
    /// Locked.
    file: File,
}

impl Ticket {
    /// Returns a new ticket for this run, or that of the run in which its job already is. Blocks.
    pub fn take(cachedir: &Path, of_job: &JobTicket, run: &QueuedRun) -> Result<Arc<Self>, StateQueueError> {
        let mut of_job = of_job.lock();
        if let Some(ticket) = of_job.upgrade() {
            return Ok(ticket);
        }
        let directory = directory(cachedir);
        files::create_private_dir(&directory)?;
        let _lock = lock(&directory)?;
        let number = tickets(&directory)?.into_iter().max().unwrap_or_default().saturating_add(1);
        let path = directory.join(number.to_string());
        let at = |error| FileError::at("create", &path)(error);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(at)?;
        if let Err(error) = file.lock() {
            _ = std::fs::remove_file(&path);
            return Err(FileError::at("lock", &path)(error).into());
        }
        // Others show it: on a full disk they show a run without a name, and wait for it as well.
        let described = map! {"jid" => &run.jid, "fun" => &run.fun, "pid" => run.pid};
        if let Err(error) = file.write_all(&msgpack::pack_map(&described)) {
            tracing::warn!(path = %path.display(), %error, "writing the ticket of a state run failed");
        }
        let ticket = Arc::new(Ticket { path, number, file });
        *of_job = Arc::downgrade(&ticket);
        Ok(ticket)
    }

    /// Returns the runs that precede this one, in order. The run may begin when there are none. Blocks.
    pub fn ahead(&self) -> Result<Vec<QueuedRun>, StateQueueError> {
        let directory = self.path.parent().unwrap_or(&self.path);
        let mut numbers = tickets(directory)?;
        // Larger numbers may be in the making; a smaller one is not given again while this one is there.
        numbers.retain(|number| *number < self.number);
        live(directory, numbers)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "removing the ticket of a state run failed");
        }
        // Not by closing: a child process that is being started has the file open as well.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(path = %self.path.display(), %error, "unlocking the ticket of a state run failed");
        }
    }
}

/// Returns the running and waiting runs of other jobs than the one with this ticket, in order. Blocks.
pub fn other_runs(cachedir: &Path, of_job: &JobTicket) -> Result<Vec<QueuedRun>, StateQueueError> {
    let directory = directory(cachedir);
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let own = of_job.lock().upgrade().map(|ticket| ticket.number);
    let _lock = lock(&directory)?;
    let mut numbers = tickets(&directory)?;
    numbers.retain(|number| Some(*number) != own);
    live(&directory, numbers)
}

fn directory(cachedir: &Path) -> PathBuf {
    cachedir.join("state_queue")
}

/// Locks the queue, until the returned file is dropped.
fn lock(directory: &Path) -> Result<File, StateQueueError> {
    let path = directory.join(LOCK);
    let at = |error| FileError::at("lock", &path)(error);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(at)?;
    let until = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(POLL_INTERVAL),
            Err(TryLockError::WouldBlock) => return Err(StateQueueError::Locked(path)),
            Err(TryLockError::Error(error)) => return Err(at(error).into()),
        }
    }
}

/// Returns the numbers of all tickets.
fn tickets(directory: &Path) -> Result<Vec<u64>, FileError> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(FileError::at("read", directory))? {
        let entry = entry.map_err(FileError::at("read", directory))?;
        numbers.extend(entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    Ok(numbers)
}

/// Returns the runs with these tickets, in order. The tickets of processes that have ended are removed.
fn live(directory: &Path, mut numbers: Vec<u64>) -> Result<Vec<QueuedRun>, StateQueueError> {
    numbers.sort_unstable();
    let mut runs = Vec::new();
    for number in numbers {
        let path = directory.join(number.to_string());
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(FileError::at("read", &path)(error).into()),
        };
        // Shared, so that two runs that look at the same time do not see each other.
        match file.try_lock_shared() {
            Ok(()) => {
                tracing::info!(ticket = %path.display(), "a process ended during its state run: its ticket is removed");
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(FileError::at("remove", &path)(error).into());
                    }
                    _ => {}
                }
            }
            Err(TryLockError::WouldBlock) => {
                let mut packed = Vec::new();
                let read = file.read_to_end(&mut packed).map_err(FileError::at("read", &path))?;
                let fields = msgpack::unpack_map(&packed[..read]).unwrap_or_default();
                runs.push(described(&fields));
            }
            Err(TryLockError::Error(error)) => return Err(FileError::at("lock", &path)(error).into()),
        }
    }
    Ok(runs)
}

fn described(fields: &Map) -> QueuedRun {
    let text = |name: &str| fields.get(name).map(ToString::to_string);
    QueuedRun {
        jid: text("jid").unwrap_or_default(),
        fun: text("fun").unwrap_or_else(|| "state.apply".to_owned()),
        pid: fields.get("pid").and_then(|pid: &Value| u32::from_value(pid)).unwrap_or_default(),
    }
}
