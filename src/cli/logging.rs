//! Logging in Salt's format: on stderr `[ERROR   ] message`, in files with time, source position and PID.
//!
//! An event is always one line: control characters of messages and fields are escaped, and long values truncated.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::Mutex;

use anyhow::Context as _;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

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
    let known = LEVELS.iter().find(|(name, _)| *name == word.to_ascii_lowercase());
    known.map(|(_, level)| *level).ok_or_else(|| {
        let names: Vec<_> = LEVELS.iter().map(|(name, _)| format!("'{name}'")).collect();
        format!("invalid choice: '{word}' (choose from {})", names.join(", "))
    })
}

/// Starts logging of the process to stderr, and to a file if one is given.
pub fn start(
    console: (LevelFilter, LineFormat),
    file: Option<(LogFile, LevelFilter, LineFormat)>,
) -> anyhow::Result<()> {
    let (level, format) = console;
    let on_stderr = tracing_subscriber::fmt::layer()
        .event_format(Lines(format))
        .with_writer(io::stderr)
        // A closed stderr must not cause a panic.
        .log_internal_errors(false)
        .with_ansi(false)
        .with_filter(level);
    let in_file = file.map(|(file, level, format)| {
        let layer = tracing_subscriber::fmt::layer().event_format(Lines(format)).with_ansi(false);
        layer.log_internal_errors(false).with_writer(Mutex::new(file)).with_filter(level)
    });
    tracing_subscriber::registry().with(on_stderr).with(in_file).try_init().context("logging is started already")
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
mod tests {
    use super::*;
    use crate::cli::log_format::{CONSOLE, DATE_AND_TIME, FILE};

    #[test]
    fn levels_have_salts_names() {
        assert_eq!(level("garbage"), Ok(LevelFilter::TRACE));
        assert_eq!(level("Warning"), Ok(LevelFilter::WARN));
        assert_eq!(level("quiet"), Ok(LevelFilter::OFF));
        let error = level("loud").unwrap_err();
        assert!(error.starts_with("invalid choice: 'loud' (choose from 'all', 'garbage', "), "{error}");
    }

    #[derive(Clone, Default)]
    struct Sink(std::sync::Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: &str) -> String {
        logged_by(format, || {
            tracing::warn!(minion = %"m1", count = 2, "something is odd");
            tracing::error!("it broke");
            tracing::info!("nobody wants to know");
        })
    }

    fn logged_by(format: &str, log: impl FnOnce()) -> String {
        let sink = Sink::default();
        let writer = sink.clone();
        let layer = tracing_subscriber::fmt::layer()
            .event_format(Lines(LineFormat::parse(format, DATE_AND_TIME).unwrap()))
            .with_ansi(false);
        let layer = layer.with_writer(move || writer.clone()).with_filter(LevelFilter::WARN);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        String::from_utf8(sink.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn an_event_is_one_line_without_control_characters() {
        let forged = "x\n2026-11-22 00:00:00,000 [brine_master] FORGED\r\t\u{1b}[2J\u{9b}2J\u{85}\u{2028}\u{202e}";
        let escaped = "x\\n2026-11-22 00:00:00,000 [brine_master] FORGED\\r\\t\\x1b[2J\\x9b2J\\x85\\u2028\\u202e";
        let error = io::Error::other(forged);
        let text = logged_by(CONSOLE, || tracing::error!(minion = %forged, error = %error, "{forged}"));
        assert_eq!(text, format!("[ERROR   ] {escaped} minion={escaped} error={escaped}\n"));
        let debug = logged_by(CONSOLE, || tracing::error!(text = forged, list = ?[forged]));
        assert_eq!(debug.matches('\n').count(), 1, "{debug}");
        assert!(!debug.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\r']), "{debug:?}");
    }

    #[test]
    fn long_values_are_truncated() {
        let long = "\u{1b}".repeat(1_000_000);
        let text = logged_by(CONSOLE, || tracing::error!(long = %long, after = 1, "{long}"));
        assert!(text.ends_with("... after=1\n"), "{}", &text[text.len() - 40..]);
        let longest = MAX_MESSAGE + MAX_FIELD + 2 * r"\u202e".len() + "[ERROR   ] ... long=... after=1\n".len();
        assert!(text.len() <= longest, "{}", text.len());
        let whole = "x".repeat(MAX_FIELD);
        let text = logged_by(CONSOLE, || tracing::error!(whole = %whole, "it fits"));
        assert_eq!(text, format!("[ERROR   ] it fits whole={whole}\n"));
    }

    #[test]
    fn lines_have_salts_formats() {
        assert_eq!(logged(CONSOLE), "[WARNING ] something is odd minion=m1 count=2\n[ERROR   ] it broke\n");
        let in_file = logged(FILE);
        let line = in_file.lines().last().unwrap();
        let (time, rest) = line.split_at("2026-11-21 02:39:01,123".len());
        assert!(time.chars().all(|c| c.is_ascii_digit() || "- :,".contains(c)), "{line}");
        assert!(rest.starts_with(" [brine::cli::logging::tests:"), "{line}");
        assert!(rest.ends_with(&format!("][ERROR   ][{}] it broke", std::process::id())), "{line}");
    }
}
