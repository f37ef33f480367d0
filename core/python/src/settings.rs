//! The option `python_host`: which interpreter runs, and for how long it stays.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_value::Value;

/// The seconds after which a process without calls ends, if `idle` does not say.
const IDLE: u64 = 60;

/// How the Python process is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The interpreter: a path, or a name that is looked for in `PATH`.
    pub interpreter: PathBuf,
    /// How long a process without calls stays.
    pub idle: Duration,
    /// Whether functions of the package `salt` are called that Brine lacks (`python_fallback`).
    pub fallback: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { interpreter: "python3".into(), idle: Duration::from_secs(IDLE), fallback: false }
    }
}

impl Settings {
    /// Reads the option: a path, or a mapping with `path` or `venv`, and `idle` in seconds.
    ///
    /// # Errors
    ///
    /// If the option has another type or an unknown key.
    pub fn read(option: &Value) -> Result<Self, String> {
        let wrong = |expected: &str| format!("option 'python_host' is invalid: expected {expected}");
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
