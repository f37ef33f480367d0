//! `rawfile_json`: appends each return and event to a file as one line of JSON. Write-only.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use brine_event::Event;
use brine_job::Return;

use crate::{Backend, BackendOption, Options, Returner, ReturnerError, encoding};

const NAME: &str = "rawfile_json";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Appends each return and event to a file as one line of JSON. It cannot be read back, so it cannot be the job cache.",
    options: &[BackendOption {
        name: "rawfile_json.filename",
        default: Some("/var/log/salt/events"),
        doc: "The path of the file. It is opened for each write, so logrotate needs no `postrotate` command.",
    }],
    open,
    // The file is opened by the first write.
    check: |options| open(options).map(|_| ()),
};

fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let path: Option<String> = options.get(NAME, "filename")?;
    let path = path.unwrap_or_else(|| "/var/log/salt/events".into()).into();
    Ok(Box::new(RawfileJson { path }))
}

struct RawfileJson {
    path: PathBuf,
}

impl RawfileJson {
    /// Appends lines, each in one write. The file is locked, as by Salt, so that lines of several processes do not
    /// interleave.
    fn append(&self, lines: impl Iterator<Item = String>) -> Result<(), ReturnerError> {
        let mut lines = lines.peekable();
        if lines.peek().is_none() {
            return Ok(());
        }
        let mut write = || {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            file.lock()?;
            lines.try_for_each(|line| write_line(&mut file, line))
        };
        write().map_err(|source| ReturnerError::File { path: self.path.clone(), source })
    }
}

/// Writes a line, and truncates the file to its former length if that fails: a partial line would also corrupt the
/// next.
fn write_line(file: &mut File, mut line: String) -> std::io::Result<()> {
    line.push('\n');
    let before = file.metadata()?;
    file.write_all(line.as_bytes()).inspect_err(|_| {
        if before.is_file() {
            // The error of the write is the one that is reported.
            _ = file.set_len(before.len());
        }
    })
}

impl Returner for RawfileJson {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        self.append(returns.iter().map(|one| encoding::of_map(one.map())))
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        self.append(events.iter().map(encoding::of_event))
    }
}

#[cfg(test)]
mod tests;
