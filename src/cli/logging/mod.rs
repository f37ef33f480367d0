//! Logging in Salt's format: on stderr `[ERROR   ] message`, in files with time, source position and PID. The journal of
//! systemd gets fields instead.
//!
//! An event is always one line: control characters of messages and fields are escaped, and long values truncated.

mod granular;
mod journal;

use std::fmt::{self, Write as _};
use std::io;
use std::sync::Mutex;

use anyhow::Context as _;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

pub use self::granular::GranularLevels;
use self::journal::Journal;
use super::log_file::LogFile;
use super::log_format::{LineFormat, Record};
use crate::escape;

/// Salt's levels, lowest first, with their equivalents.
const LEVELS: [(&str, LevelFilter); 10] = [
    ("all", LevelFilter::TRACE),
    ("garbage", LevelFilter::TRACE),
    ("trace", LevelFilter::TRACE),
    ("debug", LevelFilter::DEBUG),
    ("profile", LevelFilter::INFO),
    ("info", LevelFilter::INFO),
    ("warning", LevelFilter::WARN),
    ("error", LevelFilter::ERROR),
    ("critical", LevelFilter::OFF),
    ("quiet", LevelFilter::OFF),
];

/// The maximum length of an event's message and of a field's value, in bytes.
const MAX_MESSAGE: usize = 8192;
const MAX_FIELD: usize = 1024;
/// The mark of a truncated value.
const CUT: &str = "...";

/// Parses one of Salt's levels, for clap's `value_parser`. The error is that of Python's option parser.
pub fn level(word: &str) -> Result<LevelFilter, String> {
    let entry = LEVELS.iter().find(|(name, _)| *name == word.to_ascii_lowercase());
    entry.map(|(_, level)| *level).ok_or_else(|| {
        let names: Vec<_> = LEVELS.iter().map(|(name, _)| format!("'{name}'")).collect();
        format!("invalid choice: '{word}' (choose from {})", names.join(", "))
    })
}

/// Starts logging of the process to stderr or the journal, and to a file if one is given.
pub fn start(console: (Targets, LineFormat), file: Option<(LogFile, Targets, LineFormat)>) -> anyhow::Result<()> {
    let (levels, format) = console;
    let (in_journal, on_stderr) = if let Some(journal) = Journal::of_stderr() {
        (Some(journal.with_filter(levels)), None)
    } else {
        let layer = tracing_subscriber::fmt::layer().event_format(Lines(format)).with_writer(io::stderr);
        // A closed stderr must not cause a panic.
        (None, Some(layer.log_internal_errors(false).with_ansi(false).with_filter(levels)))
    };
    let in_file = file.map(|(file, levels, format)| {
        let layer = tracing_subscriber::fmt::layer().event_format(Lines(format)).with_ansi(false);
        layer.log_internal_errors(false).with_writer(Mutex::new(file)).with_filter(levels)
    });
    let layers = tracing_subscriber::registry().with(in_journal).with(on_stderr).with(in_file);
    layers.try_init().context("logging is started already")
}

/// Formats events, one a line.
struct Lines(LineFormat);

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut text = Text::default();
        event.record(&mut text);
        let message = text.message + &text.fields;
        self.0.write(&mut writer, &Record { now: &brine_clock::now, metadata: event.metadata(), message: &message })?;
        writeln!(writer)
    }
}

/// The message of an event followed by its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            write_escaped(&mut self.message, value, MAX_MESSAGE);
        } else {
            self.fields.extend([" ", field.name(), "="]);
            write_escaped(&mut self.fields, value, MAX_FIELD);
        }
    }
}

/// Appends the debug form of a value, escaped for one line and truncated at `limit` bytes.
fn write_escaped(out: &mut String, value: &dyn fmt::Debug, limit: usize) {
    let mut bounded = Bounded { end: out.len() + limit, out };
    // The only error is that of the limit.
    if write!(bounded, "{value:?}").is_err() {
        out.push_str(CUT);
    }
}

/// A writer that escapes text and fails at its limit, so that the rest is not even formatted.
struct Bounded<'a> {
    out: &'a mut String,
    /// The maximum length of `out`.
    end: usize,
}

impl fmt::Write for Bounded<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.out.len() >= self.end {
                return Err(fmt::Error);
            }
            escape::write_safe(c, self.out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
