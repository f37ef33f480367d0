//! `sdb`: values in databases, by `sdb://<profile>/<key>`, with profiles from the master's options. The functions call
//! the execution module of the same name.

use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::Value;

use super::RunnerContext;

/// Runner functions of `sdb`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("sdb", [get, set, delete, get_or_set_hash]);

/// Return the value of a key. Any other value is returned unchanged.
///
/// CLI Example:
///
///     salt-run sdb.get sdb://mymemcached/foo
#[function(secret)]
pub fn get(
    context: &RunnerContext,
    /// URI `sdb://PROFILE/KEY`.
    uri: Value,
) -> CallResult {
    context.call_host("sdb.get", Args::positional([uri]))
}

/// Set the value of a key. Return False if this is not the URI of a profile.
///
/// CLI Example:
///
///     salt-run sdb.set sdb://mymemcached/foo bar
#[function]
pub fn set(
    context: &RunnerContext,
    /// URI `sdb://PROFILE/KEY`.
    uri: Value,
    /// New value.
    value: Value,
) -> CallResult {
    context.call_host("sdb.set", Args::positional([uri, value]))
}

/// Delete a key. Return False if this is not the URI of a profile.
///
/// CLI Example:
///
///     salt-run sdb.delete sdb://mymemcached/foo
#[function]
pub fn delete(
    context: &RunnerContext,
    /// URI `sdb://PROFILE/KEY`.
    uri: Value,
) -> CallResult {
    context.call_host("sdb.delete", Args::positional([uri]))
}

/// Return the value of a key; if it has none, set it to random characters first.
///
/// CLI Example:
///
///     salt-run sdb.get_or_set_hash sdb://SECRET_NAME/foo 50
#[function(secret)]
pub fn get_or_set_hash(
    context: &RunnerContext,
    /// URI `sdb://PROFILE/KEY`.
    uri: Value,
    /// How many characters (8).
    #[default(8)]
    length: usize,
    /// The characters to choose from.
    #[default("abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)".into())]
    chars: String,
) -> CallResult {
    context.call_host("sdb.get_or_set_hash", Args::positional([uri, length.into(), chars.into()]))
}
