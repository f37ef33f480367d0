//! `log`: lines of a log file that match a regular expression.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use brine_text::python_regex::Regex;
use brine_value::{Map, Value, map};

use super::settings::{Settings, text};
use super::{Beacon, Kind, Options, PollContext, entry};

/// The maximum number of bytes that one poll reads; the next one continues.
const MAX_READ: u64 = 4 << 20;

struct Log {
    file: PathBuf,
    /// The tags, each with the regular expression that its lines must match at their start.
    tags: Vec<(String, Regex)>,
    /// Events about invalid expressions, for the first poll.
    errors: Vec<Map>,
    /// The offset after the last line read; `None` before the first poll, which starts at the end of the file.
    offset: Option<u64>,
}

pub(super) const KIND: Kind = Kind {
    name: "log",
    doc: "New lines of a log file that begin with a regular expression.",
    tag: "the name of the matching tag",
    options: Options::Named(&[
        entry("file", "Required. The path of the log file."),
        entry("tags", "A mapping of tag names to `{regex: <expression>}`."),
    ]),
    fields: &[
        entry("match", "`yes`; `no` for an invalid expression."),
        entry("raw", "The line."),
        entry("error", "The error of an invalid expression."),
    ],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let file = text("file", settings.get("file").ok_or("option 'file' is missing")?)?;
    let (mut tags, mut errors) = (Vec::new(), Vec::new());
    for (tag, options) in settings.get("tags").and_then(Value::as_map).into_iter().flatten() {
        let Some(pattern) = options.get("regex").and_then(Value::as_str).filter(|text| !text.is_empty()) else {
            tracing::warn!(beacon = "log", file, %tag, "a tag has no regex; ignoring it");
            continue;
        };
        match Regex::new(pattern) {
            Ok(regex) => tags.push((tag.to_string(), regex)),
            Err(error) => {
                tracing::error!(beacon = "log", file, %tag, %error, "a regex is invalid");
                errors.push(map! {"tag" => tag.to_string(), "match" => "no", "raw" => "", "error" => "bad regex"});
            }
        }
    }
    Ok(Box::new(Log { file: file.into(), tags, errors, offset: None }))
}

impl Log {
    fn events(&mut self) -> std::io::Result<Vec<Map>> {
        let mut file = File::open(&self.file)?;
        let end = file.metadata()?.len();
        let mut report = std::mem::take(&mut self.errors);
        let Some(offset) = self.offset.replace(end) else { return Ok(report) };
        // A file that has shrunk was truncated or rotated.
        let offset = if offset > end { 0 } else { offset };
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(MAX_READ).read_to_end(&mut bytes)?;
        let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            // An unfinished line, unless it exceeds the size of a read.
            None if (bytes.len() as u64) < MAX_READ => 0,
            None => bytes.len(),
        };
        self.offset = Some(offset + whole as u64);
        for line in String::from_utf8_lossy(&bytes[..whole]).lines() {
            for (tag, regex) in &self.tags {
                let event = |is: &str, raw, error| map! {"tag" => tag, "match" => is, "raw" => raw, "error" => error};
                match regex.is_match_at_start(line) {
                    Ok(true) => report.push(event("yes", line, "")),
                    Ok(false) => {}
                    Err(_) => report.push(event("no", "", "bad match")),
                }
            }
        }
        Ok(report)
    }
}

impl Beacon for Log {
    fn poll(&mut self, _context: &PollContext<'_>) -> Result<Vec<Map>, String> {
        self.events().map_err(|error| format!("reading {} failed: {error}", self.file.display()))
    }
}

#[cfg(test)]
mod tests;
