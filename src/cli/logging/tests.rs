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
