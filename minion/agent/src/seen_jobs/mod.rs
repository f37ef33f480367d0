//! The ids of the jobs that the minion has received: a job that is received again does not run again, also after a
//! restart.
//!
//! The file has a line `+ID` for each job that was received and a line `ID` once it begins. A job that had not begun
//! when the minion was killed is forgotten after the restart, so that it runs when the master sends it again.
//!
//! A syndic records `ID/PART`: the parts of a batch share one id.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Bound;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use brine_ids::Jid;
use brine_system::files;
use parking_lot::Mutex;

/// The minimum number of recorded ids: more than a minion receives while it decrypts a publish.
const MIN_RECORDED: usize = 10_000;
/// The separator of an id and the name of its part.
const PART: char = '/';
/// The maximum length of a line, including its line break: an id has at most 32 bytes, the name of a part 16.
const MAX_LINE: usize = 51;
/// The number of lines per recorded id from which the file is rewritten.
const LINES_PER_ID: usize = 4;

/// The last ids, in the order of their receipt. All methods that write block.
#[derive(Debug)]
pub struct SeenJobs {
    limit: usize,
    order: VecDeque<String>,
    /// Ordered, so that the parts of a job are found by its id.
    jids: BTreeSet<String>,
    /// The jobs that have not begun.
    waiting: HashSet<String>,
    /// The id after which jobs may have been missed.
    last: Option<String>,
    file: Option<(PathBuf, File)>,
    /// The number of lines in the file.
    lines: usize,
    /// Whether lines are not flushed to disk yet.
    is_unflushed: bool,
    /// Whether a thread is flushing the file.
    is_flushing: bool,
}

impl SeenJobs {
    /// Creates a set in memory with this capacity, at least 10,000.
    pub fn new(limit: usize) -> Self {
        SeenJobs {
            limit: limit.max(MIN_RECORDED),
            order: VecDeque::new(),
            jids: BTreeSet::new(),
            waiting: HashSet::new(),
            last: None,
            file: None,
            lines: 0,
            is_unflushed: false,
            is_flushing: false,
        }
    }

    /// Opens the set in this file. If that fails, it continues in memory.
    pub fn open(path: &Path, limit: usize) -> Self {
        let mut seen = SeenJobs::new(limit);
        match seen.load(path) {
            Ok(file) => seen.file = Some((path.to_owned(), file)),
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "opening the list of received jobs failed: after a restart a job may run twice");
            }
        }
        seen
    }

    fn load(&mut self, path: &Path) -> std::io::Result<File> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
        let mut bytes = Vec::new();
        let most = (LINES_PER_ID * self.limit * MAX_LINE) as u64;
        let length = file.metadata()?.len();
        if length > most {
            file.seek(SeekFrom::Start(length - most))?;
        }
        Read::by_ref(&mut file).take(most).read_to_end(&mut bytes)?;
        // Bytes that a power failure has left are lines that are no ids.
        let text = String::from_utf8_lossy(&bytes);
        for line in text.lines() {
            self.lines += 1;
            let (jid, has_begun) = line.strip_prefix('+').map_or((line, true), |jid| (jid, false));
            // The last line may have been truncated by a crash.
            if job_of(jid).parse::<Jid>().is_err() {
                continue;
            }
            self.remember(jid);
            if has_begun {
                self.waiting.remove(jid);
            } else {
                self.waiting.insert(jid.to_owned());
            }
        }
        // Jobs received after the first one that has not begun are sent again, too, and are recorded.
        let first = self.order.iter().position(|jid| self.waiting.contains(jid)).unwrap_or(self.order.len());
        self.last = match first.checked_sub(1) {
            Some(last) => Some(self.order[last].clone()),
            // None before it is known: those from this one on were missed.
            None => self.order.front().map(|first| before(job_of(first))),
        };
        let waiting = std::mem::take(&mut self.waiting);
        self.order.retain(|jid| !waiting.contains(jid));
        self.jids.retain(|jid| !waiting.contains(jid));
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        Ok(file)
    }

    /// Returns the last received id; after a restart the last one before those that have not begun.
    pub fn last(&self) -> Option<&str> {
        self.last.as_deref().map(job_of)
    }

    /// Whether an id is recorded.
    pub fn contains(&self, jid: &str) -> bool {
        self.jids.contains(jid)
    }

    /// Whether an id is recorded, or one of its parts.
    pub fn contains_job(&self, jid: &str) -> bool {
        let next = self.jids.range::<str, _>((Bound::Included(jid), Bound::Unbounded)).next();
        next.is_some_and(|next| job_of(next) == jid)
    }

    /// Records that a job begins. Jobs that were not received, such as the minion's own, are ignored.
    pub fn begin(&mut self, jid: &str) {
        if !self.waiting.remove(jid) {
            return;
        }
        if let Err(error) = self.append(jid) {
            tracing::error!(jid, %error, "writing the list of received jobs failed: after a restart the job may run twice");
        }
    }

    /// Adds an id. Returns whether it is new.
    pub fn insert(&mut self, jid: &str) -> bool {
        if !self.remember(jid) {
            return false;
        }
        self.waiting.insert(jid.to_owned());
        self.last = Some(jid.to_owned());
        if let Err(error) = self.append(&format!("+{jid}")) {
            tracing::error!(jid, %error, "writing the list of received jobs failed: after a restart the job may run twice");
        }
        self.is_unflushed = self.file.is_some();
        true
    }

    fn remember(&mut self, jid: &str) -> bool {
        if !self.jids.insert(jid.to_owned()) {
            return false;
        }
        self.order.push_back(jid.to_owned());
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.jids.remove(&oldest);
            self.waiting.remove(&oldest);
        }
        true
    }

    fn append(&mut self, line: &str) -> std::io::Result<()> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        file.write_all(format!("{line}\n").as_bytes())?;
        self.lines += 1;
        if self.lines >= LINES_PER_ID * self.limit {
            let mark = |jid: &String| if self.waiting.contains(jid) { "+" } else { "" };
            let all: String = self.order.iter().flat_map(|jid| [mark(jid), jid, "\n"]).collect();
            files::write_atomic(&*path, all.as_bytes(), 0o600).map_err(|error| error.source)?;
            *file = OpenOptions::new().append(true).open(&*path)?;
            self.lines = self.order.len();
        }
        Ok(())
    }

    /// Whether lines wait to be flushed to disk and no thread is doing that: then the caller has to, by
    /// [`flush`].
    pub fn needs_flush(&mut self) -> bool {
        self.is_unflushed && !std::mem::replace(&mut self.is_flushing, true)
    }

    /// Returns the file to flush, or ends flushing if nothing is left.
    fn next_flush(&mut self) -> Option<File> {
        let is_needed = std::mem::take(&mut self.is_unflushed);
        let file = self.file.as_ref().filter(|_| is_needed).and_then(|(_, file)| file.try_clone().ok());
        self.is_flushing = file.is_some();
        file
    }

    /// Records that no thread could be started to flush the file.
    pub fn abandon_flush(&mut self) {
        self.is_flushing = false;
    }
}

/// Flushes the file after [`SeenJobs::needs_flush`], until no line is left: a flush contains all lines that were written
/// during the one before. Returns the number of flushes. Blocks.
pub fn flush(seen: &Mutex<SeenJobs>) -> usize {
    let mut count = 0;
    loop {
        let Some(file) = seen.lock().next_flush() else { return count };
        if let Err(error) = file.sync_data() {
            tracing::warn!(%error, "flushing the list of received jobs failed");
        }
        count += 1;
    }
}

/// Returns the id of a job, without its part.
fn job_of(line: &str) -> &str {
    line.split_once(PART).map_or(line, |(jid, _)| jid)
}

/// Returns the largest id that is smaller than this one.
fn before(jid: &str) -> String {
    let digits = jid.split_once('_').map_or(jid, |(digits, _)| digits);
    let number = digits.parse::<u128>().unwrap_or_default();
    format!("{:020}", number.saturating_sub(1))
}

#[cfg(test)]
mod tests;
