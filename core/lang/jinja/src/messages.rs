//! The beginnings of complete error messages, which the error of a render passes on unchanged, and the errors of missing
//! functions of the host.

use minijinja::{Error, ErrorKind};

/// The prefix of errors of a host function.
pub(crate) const SALT_FUNCTION: &str = "Problem running salt function in Jinja template: ";

/// The prefix of complete messages about something undefined.
pub(crate) const UNDEFINED: &str = "Jinja variable ";

/// The prefix of errors about untrusted text.
pub(crate) const REFUSED: &str = "render failed: ";

/// Returns the error of a missing host function.
pub(crate) fn missing_function(name: &str) -> Error {
    Error::new(ErrorKind::UndefinedError, no_function(name))
}

/// Returns the error of a missing function in a module of the host.
pub(crate) fn missing_in_module(name: &str) -> Error {
    Error::new(
        ErrorKind::UndefinedError,
        format!("{UNDEFINED}'salt.loader.lazy.LoadedMod object' has no attribute '{name}'"),
    )
}

/// Returns the message for a missing host function.
pub(crate) fn no_function(name: &str) -> String {
    format!("{UNDEFINED}'salt.utils.templates.AliasedLoader object' has no attribute '{name}'")
}
