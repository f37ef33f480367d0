//! The Python host: a child process that runs custom modules in Python.
//!
//! | module | owns |
//! |---|---|
//! | `settings` | the option `python_host`: [`Settings`] |
//! | `files` | the files that may be loaded, and the check of their owners: [`Files`] |
//! | `library` | custom modules by type, and their description by Python: [`Library`] |
//! | `programs` | modules that are programs in other languages |
//! | `functions` | the functions of custom modules, in the form of built-in ones: [`Functions`] |
//! | `host` | calls, and the process that executes them: [`Python`] |
//! | `leases` | leases on processes whose functions rendered data refers to: [`Lease`] |
//! | `process` | one process: its start, its connection, its end |
//! | `program/` | the program that it runs, in Python |
//!
//! A process is started at the first call. Calls run concurrently, each in a thread of the process, and can call
//! functions of Brine. If the process crashes, all calls in it fail.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

mod files;
mod functions;
mod host;
mod leases;
mod library;
mod process;
mod programs;
mod running;
mod settings;
#[cfg(test)]
mod tests;
mod unused;

use brine_function::CallError;

pub use files::Files;
pub use functions::Functions;
pub use host::{Call, Python, Services, Setup};
pub use leases::{Lease, Leases, token};
pub use library::{Described, Library};
pub use settings::{Settings, SettingsError};
pub use unused::{warn_about_unused, warn_if_unused};

/// The errors of a call of Python.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PythonError {
    /// The interpreter cannot be started.
    #[error(
        "Python modules cannot run: '{interpreter}' {reason}; install Python 3.9 or later, or name it in 'python_host'"
    )]
    NoPython {
        /// The interpreter: its path, or the name that was searched in `PATH`.
        interpreter: String,
        /// The reason why it does not start.
        reason: String,
    },
    /// The process ended during the call.
    #[error("the Python process ended during the call: {0}")]
    Ended(String),
    /// The function raised an exception.
    #[error("{class}: {message}")]
    Raised {
        /// The class of the exception, such as `ValueError`.
        class: String,
        /// The message of the exception.
        message: String,
    },
    /// The job was cancelled, or the deadline of the call passed.
    #[error("the call of Python was cancelled: {0}")]
    Cancelled(&'static str),
    /// A limit of the host is exceeded.
    #[error("the call of Python failed: {0}")]
    Limit(String),
}

impl PythonError {
    /// Converts to the error of a function call, with Salt's messages.
    pub fn of_call(self, function: &str) -> CallError {
        let PythonError::Raised { class, message } = self else { return CallError::execution(self) };
        match class.as_str() {
            "CommandExecutionError" => CallError::Execution(message),
            "CommandNotFoundError" => {
                CallError::Execution(format!("Command required for '{function}' not found: {message}"))
            }
            "SaltInvocationError" => CallError::Invocation { function: function.to_owned(), message },
            "TypeError" => CallError::Arguments { function: function.to_owned(), message },
            _ => CallError::Exception(format!("{class}: {message}")),
        }
    }
}
