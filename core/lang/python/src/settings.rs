//! The option `python_host`: the interpreter, and the time for which an idle process is kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_value::Value;

/// The default of `idle`, in seconds.
const IDLE: u64 = 60;

/// The error of the option `python_host`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("option 'python_host' is invalid: expected {expected}")]
pub struct SettingsError {
    /// The expected value, and if need be the given one.
    pub expected: String,
}

/// The settings with which the Python process is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The interpreter: a path, or a name that is searched in `PATH`.
    pub interpreter: PathBuf,
    /// The time after which a process without calls ends.
    pub idle: Duration,
    /// Whether functions that Brine lacks are taken from the package `salt` (`python_fallback`).
    pub fallback: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { interpreter: "python3".into(), idle: Duration::from_secs(IDLE), fallback: false }
    }
}

impl Settings {
    /// Parses the option: a path, or a mapping with `path` or `venv`, and `idle` in seconds.
    ///
    /// # Errors
    ///
    /// If the option has another type or an unknown key.
    pub fn read(option: &Value) -> Result<Self, SettingsError> {
        let wrong = |expected: &str| SettingsError { expected: expected.to_owned() };
        let mut settings = Settings::default();
        match option {
            Value::Nil => {}
            Value::Str(path) => settings.interpreter = path.into(),
            Value::Map(map) => {
                for (key, value) in map {
                    match (key.as_str().unwrap_or_default(), value) {
                        ("path", Value::Str(path)) => settings.interpreter = path.into(),
                        ("venv", Value::Str(path)) => settings.interpreter = Path::new(path).join("bin/python3"),
                        ("idle", Value::Int(seconds @ 1..=86_400)) => {
                            settings.idle = Duration::from_secs(seconds.unsigned_abs());
                        }
                        ("idle", _) => return Err(wrong("'idle' from 1 to 86400 seconds")),
                        _ => return Err(wrong(&format!("'path', 'venv' and 'idle', got '{key}'"))),
                    }
                }
            }
            _ => return Err(wrong("a path or a mapping")),
        }
        Ok(settings)
    }
}
