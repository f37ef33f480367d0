//! Log lines as Salt writes them: on stderr `[ERROR   ] text`, in files with time, place and process.

use std::fmt::{self, Write as _};
use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use brine_core::files;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Salt's words for levels, most talkative first, with what they mean here.
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

/// The level of one of Salt's words, for clap's `value_parser`; the error is what its option parser says.
pub fn level(word: &str) -> Result<LevelFilter, String> {
    let known = LEVELS.iter().find(|(name, _)| *name == word.to_ascii_lowercase());
    known.map(|(_, level)| *level).ok_or_else(|| {
        let names: Vec<_> = LEVELS.iter().map(|(name, _)| format!("'{name}'")).collect();
        format!("invalid choice: '{word}' (choose from {})", names.join(", "))
    })
}

/// Starts logging for the whole process: to stderr, and to a file if one is given.
pub fn start(console: LevelFilter, file: Option<(&Path, LevelFilter)>) -> anyhow::Result<()> {
    let on_stderr = tracing_subscriber::fmt::layer()
        .event_format(Lines { detailed: false })
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_filter(console);
    let in_file = match file {
        Some((path, level)) => {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            let opened = opened.map_err(files::FileError::at("open", path)).context("no log file")?;
            let layer = tracing_subscriber::fmt::layer().event_format(Lines { detailed: true }).with_ansi(false);
            Some(layer.with_writer(std::sync::Mutex::new(opened)).with_filter(level))
        }
        None => None,
    };
    tracing_subscriber::registry().with(on_stderr).with(in_file).try_init().context("logging is started already")
}

/// One event a line.
struct Lines {
    /// With time, place and process, for files.
    detailed: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let metadata = event.metadata();
        let level = match *metadata.level() {
            Level::ERROR => "ERROR",
            Level::WARN => "WARNING",
            Level::INFO => "INFO",
            Level::DEBUG => "DEBUG",
            Level::TRACE => "TRACE",
        };
        if self.detailed {
            let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S,%3f").to_string();
            let line = metadata.line().unwrap_or_default();
            write!(writer, "{now} [{:<17}:{line:<4}][{level:<8}][{}] ", metadata.target(), std::process::id())?;
        } else {
            write!(writer, "[{level:<8}] ")?;
        }
        let mut text = Text::default();
        event.record(&mut text);
        writeln!(writer, "{}{}", text.message, text.fields)
    }
}

/// The message of an event, and its fields behind it.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_salts_names() {
        assert_eq!(level("garbage"), Ok(LevelFilter::TRACE));
        assert_eq!(level("Warning"), Ok(LevelFilter::WARN));
        assert_eq!(level("quiet"), Ok(LevelFilter::OFF));
        let told = level("loud").unwrap_err();
        assert!(told.starts_with("invalid choice: 'loud' (choose from 'all', 'garbage', "), "{told}");
    }

    #[derive(Clone, Default)]
    struct Sink(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(detailed: bool) -> String {
        let sink = Sink::default();
        let writer = sink.clone();
        let layer = tracing_subscriber::fmt::layer().event_format(Lines { detailed }).with_ansi(false);
        let layer = layer.with_writer(move || writer.clone()).with_filter(LevelFilter::WARN);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!(minion = %"m1", count = 2, "something is odd");
            tracing::error!("it broke");
            tracing::info!("nobody wants to know");
        });
        String::from_utf8(sink.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn lines_are_salts_on_stderr_and_in_files() {
        assert_eq!(logged(false), "[WARNING ] something is odd minion=m1 count=2\n[ERROR   ] it broke\n");
        let in_file = logged(true);
        let line = in_file.lines().last().unwrap();
        let (time, rest) = line.split_at("2026-11-21 02:39:01,123".len());
        assert!(time.chars().all(|c| c.is_ascii_digit() || "- :,".contains(c)), "{line}");
        assert!(rest.starts_with(" [brine::cli::logging::tests:"), "{line}");
        assert!(rest.ends_with(&format!("][ERROR   ][{}] it broke", std::process::id())), "{line}");
    }
}
