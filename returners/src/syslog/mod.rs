//! `syslog`: sends each return as JSON to the host's syslog daemon.

use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use brine_job::Return;

use crate::{Backend, BackendOption, Options, Returner, ReturnerError, encoding};

const NAME: &str = "syslog";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Sends each return as JSON to the host's syslog daemon, whose limit of a message may cut it off.",
    options: &[
        BackendOption {
            name: "syslog.level",
            default: Some("LOG_INFO"),
            doc: "The level: LOG_EMERG, LOG_ALERT, LOG_CRIT, LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO or LOG_DEBUG.",
        },
        BackendOption {
            name: "syslog.facility",
            default: Some("LOG_USER"),
            doc: "The facility, such as LOG_DAEMON or LOG_LOCAL0.",
        },
        BackendOption {
            name: "syslog.tag",
            default: None,
            doc: "The name in front of each message, of at most 32 characters; the name of the program if unset.",
        },
        BackendOption {
            name: "syslog.options",
            default: Some("[]"),
            doc: "LOG_PID adds the PID, LOG_PERROR also prints the message on standard error; LOG_CONS, LOG_NDELAY and \
                  LOG_NOWAIT are accepted.",
        },
        BackendOption { name: "syslog.socket", default: Some("/dev/log"), doc: "The socket of the syslog daemon." },
    ],
    open: |options| Ok(Box::new(Syslog::new(options)?)),
    check: |options| Syslog::new(options).map(drop),
};

const LEVELS: &[(&str, u16)] = &[
    ("LOG_EMERG", 0),
    ("LOG_ALERT", 1),
    ("LOG_CRIT", 2),
    ("LOG_ERR", 3),
    ("LOG_WARNING", 4),
    ("LOG_NOTICE", 5),
    ("LOG_INFO", 6),
    ("LOG_DEBUG", 7),
];

const FACILITIES: &[(&str, u16)] = &[
    ("LOG_KERN", 0),
    ("LOG_USER", 1),
    ("LOG_MAIL", 2),
    ("LOG_DAEMON", 3),
    ("LOG_AUTH", 4),
    ("LOG_SYSLOG", 5),
    ("LOG_LPR", 6),
    ("LOG_NEWS", 7),
    ("LOG_UUCP", 8),
    ("LOG_CRON", 9),
    ("LOG_AUTHPRIV", 10),
    ("LOG_LOCAL0", 16),
    ("LOG_LOCAL1", 17),
    ("LOG_LOCAL2", 18),
    ("LOG_LOCAL3", 19),
    ("LOG_LOCAL4", 20),
    ("LOG_LOCAL5", 21),
    ("LOG_LOCAL6", 22),
    ("LOG_LOCAL7", 23),
];

const OPTIONS: &[&str] = &["LOG_PID", "LOG_CONS", "LOG_NDELAY", "LOG_NOWAIT", "LOG_PERROR"];

struct Syslog {
    priority: u16,
    /// The tag, with the PID if that is enabled.
    tag: String,
    is_printed: bool,
    socket: PathBuf,
}

impl Syslog {
    fn new(options: &Options) -> Result<Self, ReturnerError> {
        let invalid = |name: &str, reason: String| ReturnerError::Option { option: format!("{NAME}.{name}"), reason };
        let number = |name: &str, default: &str, table: &[(&str, u16)]| {
            let keyword: String = options.get(NAME, name)?.unwrap_or_else(|| default.to_owned());
            let entry = table.iter().find(|(word, _)| *word == keyword);
            entry.map(|(_, number)| *number).ok_or_else(|| {
                let names: Vec<&str> = table.iter().map(|(word, _)| *word).collect();
                invalid(name, format!("'{keyword}' is unknown: expected one of {}", names.join(", ")))
            })
        };
        let priority = number("facility", "LOG_USER", FACILITIES)? * 8 + number("level", "LOG_INFO", LEVELS)?;
        let mut tag = options.get::<String>(NAME, "tag")?.unwrap_or_else(program);
        if tag.chars().count() > 32 {
            return Err(invalid("tag", "it has more than 32 characters".to_owned()));
        }
        let flags: Vec<String> = options.get(NAME, "options")?.unwrap_or_default();
        if let Some(unknown) = flags.iter().find(|flag| !OPTIONS.contains(&flag.as_str())) {
            let expected = OPTIONS.join(", ");
            return Err(invalid("options", format!("'{unknown}' is unknown: expected some of {expected}")));
        }
        let has = |flag: &str| flags.iter().any(|one| one == flag);
        if has("LOG_PID") {
            tag = format!("{tag}[{}]", std::process::id());
        }
        let socket: Option<String> = options.get(NAME, "socket")?;
        let socket = socket.unwrap_or_else(|| "/dev/log".to_owned()).into();
        Ok(Syslog { priority, tag, is_printed: has("LOG_PERROR"), socket })
    }

    fn send(&self, message: &str) -> std::io::Result<()> {
        let time = brine_clock::now().strftime("%b %e %H:%M:%S").to_string();
        let line = format!("<{}>{time} {}: {message}", self.priority, self.tag);
        let socket = UnixDatagram::unbound()?;
        // A hung daemon may leave its queue full.
        socket.set_write_timeout(Some(crate::connection::TIMEOUT))?;
        socket.send_to(line.as_bytes(), &self.socket).map(drop)
    }
}

/// Returns the name of this program.
fn program() -> String {
    let path = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().chars().take(32).collect()
}

impl Returner for Syslog {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| {
            // JSON contains no line breaks: a return cannot look like several messages.
            let message = encoding::of_map(job_return.map());
            if self.is_printed {
                // Standard error may be closed.
                _ = writeln!(std::io::stderr(), "{}: {message}", self.tag);
            }
            self.send(&message).map_err(|source| ReturnerError::Server {
                returner: NAME,
                server: format!("syslog at {}", self.socket.display()),
                reason: format!("{source} (message of {} bytes)", message.len()),
                is_outage: false,
            })
        })
    }

    fn stores_events(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
