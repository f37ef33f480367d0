//! The journal of systemd, if stderr leads there: an event has the level as `PRIORITY`, where it comes from, and each field
//! (`MINION`, `JID`, `TAG`, `ERROR` ...) beside its line, so that `journalctl -p err` and `journalctl MINION=web1` find it.

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use systemd_journal_logger::{JournalLog, connected_to_journal};

use super::{MAX_FIELD, Text, write_escaped};

/// The layer that sends events to the journal.
pub(super) struct Journal(JournalLog);

impl Journal {
    /// Returns the layer if stderr is a stream of the journal, and the journal can be reached.
    pub fn of_stderr() -> Option<Self> {
        // Before anything is logged: who reads stderr in a terminal or a test sees the lines.
        connected_to_journal().then(JournalLog::new)?.ok().map(Self)
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let mut fields = Fields::default();
        event.record(&mut fields);
        let pairs: Vec<(&str, &str)> = fields.0.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let metadata = event.metadata();
        // A full or restarting journal loses the line, as it would lose one of stderr.
        _ = self.0.journal_send(
            &log::Record::builder()
                .level(priority(*metadata.level()))
                .target(metadata.target())
                .module_path(metadata.module_path())
                .file(metadata.file())
                .line(metadata.line())
                .args(format_args!("{}{}", text.message, text.fields))
                .key_values(&pairs.as_slice())
                .build(),
        );
    }
}

/// Returns the level whose priority the logger writes: its own for `Info` and `Debug` are one too urgent.
fn priority(level: Level) -> log::Level {
    match level {
        Level::ERROR => log::Level::Error,
        Level::WARN => log::Level::Warn,
        Level::INFO => log::Level::Debug,
        Level::DEBUG | Level::TRACE => log::Level::Trace,
    }
}

/// The fields of an event without its message.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if !OWN.contains(&field.name()) {
            let mut text = String::new();
            write_escaped(&mut text, value, MAX_FIELD);
            self.0.push((field.name(), text));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        // Without the quotes of the line, so that `JID=2026...` matches.
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// Names of fields that the journal itself has.
const OWN: [&str; 5] = ["message", "priority", "target", "syslog_identifier", "syslog_pid"];

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// What an event gives to the journal.
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<(&'static str, String)>>>);

    impl<S: Subscriber> Layer<S> for Seen {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut fields = Fields::default();
            event.record(&mut fields);
            self.0.lock().unwrap().extend(fields.0);
        }
    }

    #[test]
    fn fields_are_bounded_and_have_no_control_characters() {
        let seen = Seen::default();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(seen.clone()), || {
            let long = "x".repeat(100_000);
            tracing::warn!(jid = "20261130000000000000", minion = %"web1", count = 2, tag = %"a\nPRIORITY=0", long, priority = 0, "it is odd");
        });
        let fields = seen.0.lock().unwrap().clone();
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["jid", "minion", "count", "tag", "long"]);
        let values: Vec<&str> = fields[..4].iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["20261130000000000000", "web1", "2", "a\\nPRIORITY=0"]);
        assert!(fields[4].1.len() < 2 * MAX_FIELD, "{}", fields[4].1.len());
    }

    #[test]
    fn a_terminal_or_a_pipe_is_not_the_journal() {
        assert!(Journal::of_stderr().is_none());
    }
}
