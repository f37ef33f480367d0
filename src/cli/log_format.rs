//! Formats log lines by Salt's options `log_fmt_console`, `log_fmt_logfile` and `log_datefmt*`, which are Python's `%`
//! format strings over the attributes of a log record.

use std::fmt::{self, Write};

use jiff::Zoned;
use tracing::Metadata;

/// Salt's format of a line on a terminal.
pub const CONSOLE: &str = "[%(levelname)-8s] %(message)s";
/// The format of a daemon's line on stderr: Salt's with the time.
pub const DAEMON_CONSOLE: &str = "%(asctime)s,%(msecs)03d [%(levelname)-8s] %(message)s";
/// Salt's format of a line in a file.
pub const FILE: &str = "%(asctime)s,%(msecs)03d [%(name)-17s:%(lineno)-4d][%(levelname)-8s][%(process)d] %(message)s";
/// Salt's format of the time on a terminal.
pub const TIME: &str = "%H:%M:%S";
/// Salt's format of the time in a file.
pub const DATE_AND_TIME: &str = "%Y-%m-%d %H:%M:%S";

/// A parsed line format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineFormat {
    parts: Vec<Part>,
    /// The format of `%(asctime)s`, for strftime.
    date: String,
}

/// The errors of a format string.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A `%` without a valid conversion.
    #[error("the conversion at '{0}' is invalid: expected %(name)s, %(name)d or %%")]
    Conversion(String),
    /// An unknown attribute.
    #[error(
        "the attribute '{0}' is unknown: expected one of asctime, msecs, levelname, name, lineno, process, message"
    )]
    Attribute(String),
    /// An invalid date format.
    #[error("the date format '{format}' is invalid: {reason}")]
    Date {
        /// The format string.
        format: String,
        /// The error of strftime.
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Field { field: Field, left: bool, zeros: bool, width: usize },
}

/// An attribute of a log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Time,
    Milliseconds,
    Created,
    Level,
    LevelNumber,
    Name,
    Line,
    File,
    Process,
    ProcessName,
    Thread,
    Message,
    /// `[ERROR   ]`: Salt's attributes for coloured parts, here without colours.
    BracketLevel,
    BracketName,
    BracketProcess,
    /// Attributes of Python or of Salt's jobs that have no value here.
    Empty,
}

impl Field {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "asctime" => Field::Time,
            "msecs" => Field::Milliseconds,
            "created" => Field::Created,
            "levelname" => Field::Level,
            "levelno" => Field::LevelNumber,
            "name" | "module" => Field::Name,
            "lineno" => Field::Line,
            "pathname" | "filename" => Field::File,
            "process" => Field::Process,
            "processName" => Field::ProcessName,
            "thread" | "threadName" => Field::Thread,
            "message" | "colormsg" => Field::Message,
            "bracketlevel" | "colorlevel" => Field::BracketLevel,
            "bracketname" | "colorname" => Field::BracketName,
            "bracketprocess" | "colorprocess" => Field::BracketProcess,
            "funcName" | "relativeCreated" | "jid" | "minion_id" | "exc_info" => Field::Empty,
            _ => return None,
        })
    }
}

/// A log event to format.
pub struct Record<'a> {
    /// Returns the time of the event; called only for formats with a time.
    pub now: &'a dyn Fn() -> Zoned,
    /// Its level and source position.
    pub metadata: &'a Metadata<'a>,
    /// Its message and fields, escaped for one line.
    pub message: &'a str,
}

impl LineFormat {
    /// Parses a line format and a date format.
    pub fn parse(template: &str, date: &str) -> Result<Self, FormatError> {
        let wrong = |reason: String| FormatError::Date { format: date.to_owned(), reason };
        brine_clock::strftime_in_zone(date, &brine_clock::now()).map_err(|error| wrong(error.to_string()))?;
        let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), template);
        while let Some(at) = rest.find('%') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("%%") {
                text.push('%');
                rest = after;
                continue;
            }
            let (part, after) = conversion(rest)?;
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(part);
            rest = after;
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(LineFormat { parts, date: date.to_owned() })
    }

    /// Writes a line without line feed.
    pub fn write(&self, out: &mut dyn Write, record: &Record<'_>) -> fmt::Result {
        let has_time =
            |part: &Part| matches!(part, Part::Field { field: Field::Time | Field::Milliseconds | Field::Created, .. });
        let now = self.parts.iter().any(has_time).then(record.now);
        for part in &self.parts {
            match part {
                Part::Text(text) => out.write_str(text)?,
                Part::Field { field: Field::Message, width: 0, .. } => out.write_str(record.message)?,
                Part::Field { field, left, zeros, width } => {
                    let value = self.value(*field, record, now.as_ref());
                    match (left, zeros) {
                        (true, _) => write!(out, "{value:<width$}")?,
                        (false, true) => write!(out, "{value:0>width$}")?,
                        (false, false) => write!(out, "{value:>width$}")?,
                    }
                }
            }
        }
        Ok(())
    }

    fn value(&self, field: Field, record: &Record<'_>, now: Option<&Zoned>) -> String {
        let time = |show: &dyn Fn(&Zoned) -> String| now.map(show).unwrap_or_default();
        let metadata = record.metadata;
        let level = level_name(*metadata.level());
        match field {
            Field::Time => time(&|now| brine_clock::strftime_in_zone(&self.date, now).unwrap_or_default()),
            Field::Milliseconds => time(&|now| now.millisecond().to_string()),
            Field::Created => {
                time(&|now| format!("{}.{:06}", now.timestamp().as_second(), now.subsec_nanosecond() / 1000))
            }
            Field::Level => level.to_owned(),
            Field::LevelNumber => level_number(*metadata.level()).to_string(),
            Field::Name => metadata.target().to_owned(),
            Field::Line => metadata.line().unwrap_or_default().to_string(),
            Field::File => metadata.file().unwrap_or_default().to_owned(),
            Field::Process => std::process::id().to_string(),
            Field::ProcessName => "MainProcess".to_owned(),
            Field::Thread => std::thread::current().name().unwrap_or_default().to_owned(),
            Field::Message => record.message.to_owned(),
            Field::BracketLevel => format!("[{level:<8}]"),
            Field::BracketName => format!("[{:<17}]", metadata.target()),
            Field::BracketProcess => format!("[{:>5}]", std::process::id()),
            Field::Empty => String::new(),
        }
    }
}

/// Returns Salt's name of a level.
fn level_name(level: tracing::Level) -> &'static str {
    match level {
        tracing::Level::ERROR => "ERROR",
        tracing::Level::WARN => "WARNING",
        tracing::Level::INFO => "INFO",
        tracing::Level::DEBUG => "DEBUG",
        tracing::Level::TRACE => "TRACE",
    }
}

/// Returns Python's number of a level, and Salt's 5 for `trace`.
fn level_number(level: tracing::Level) -> u8 {
    match level {
        tracing::Level::ERROR => 40,
        tracing::Level::WARN => 30,
        tracing::Level::INFO => 20,
        tracing::Level::DEBUG => 10,
        tracing::Level::TRACE => 5,
    }
}

/// The maximum width of a field.
const MAX_WIDTH: usize = 200;

/// Parses the conversion at the start of a text and returns it with the remaining text.
fn conversion(text: &str) -> Result<(Part, &str), FormatError> {
    let wrong = || FormatError::Conversion(text.chars().take(20).collect());
    let (name, mut rest) = text.strip_prefix("%(").and_then(|rest| rest.split_once(')')).ok_or_else(wrong)?;
    let field = Field::named(name).ok_or_else(|| FormatError::Attribute(name.to_owned()))?;
    let (mut left, mut zeros) = (false, false);
    while let Some(flag) = rest.chars().next().filter(|c| "-0 +#".contains(*c)) {
        left |= flag == '-';
        zeros |= flag == '0';
        rest = &rest[1..];
    }
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let width = if digits == 0 { 0 } else { rest[..digits].parse().map_err(|_| wrong())? };
    rest = &rest[digits..];
    if let Some(precision) = rest.strip_prefix('.') {
        rest = precision.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    let rest = rest.strip_prefix(['s', 'd', 'i', 'f', 'r']).filter(|_| width <= MAX_WIDTH).ok_or_else(wrong)?;
    Ok((Part::Field { field, left, zeros, width }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons_format_strings_are_parsed() {
        for template in [CONSOLE, DAEMON_CONSOLE, FILE, "%(colorlevel)s %(colormsg)s", "100%% %(message)s", "", "plain"]
        {
            assert!(LineFormat::parse(template, DATE_AND_TIME).is_ok(), "{template}");
        }
        let parsed = LineFormat::parse("a%%%(msecs)03d|", TIME).unwrap();
        let field = Part::Field { field: Field::Milliseconds, left: false, zeros: true, width: 3 };
        assert_eq!(parsed.parts, [Part::Text("a%".into()), field, Part::Text("|".into())]);
    }

    #[test]
    fn invalid_format_strings_are_refused() {
        for (template, date, message) in [
            (
                "%(nope)s",
                TIME,
                "the attribute 'nope' is unknown: expected one of asctime, msecs, levelname, name, lineno, process, message",
            ),
            ("x %d", TIME, "the conversion at '%d' is invalid: expected %(name)s, %(name)d or %%"),
            ("%(message)", TIME, "the conversion at '%(message)' is invalid: expected %(name)s, %(name)d or %%"),
            ("%(name)9999s", TIME, "the conversion at '%(name)9999s' is invalid: expected %(name)s, %(name)d or %%"),
        ] {
            assert_eq!(LineFormat::parse(template, date).unwrap_err().to_string(), message);
        }
        let error = LineFormat::parse(CONSOLE, "%!").unwrap_err().to_string();
        assert!(error.starts_with("the date format '%!' is invalid: "), "{error}");
    }
}
