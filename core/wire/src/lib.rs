//! What travels between minions, clients and the master: envelopes and typed commands.
//!
//! Bytes become an [`Envelope`], its load becomes a [`MinionCommand`] or a [`ClientCommand`]: from then
//! on, what may be done is a match on an enum. Names and fields are Salt's, version 3.

mod auth;
mod command;
mod envelope;
pub mod metrics;
mod peer;
pub mod private;
mod proof;
mod publish;
pub mod purpose;
pub mod signed;

pub use auth::{Accepted, AuthReply, AuthRequest, Binding, Verdict};
pub use command::{Call, ClientCommand, ListKind, MinionCommand, MinionEvents};
pub use envelope::{Envelope, PROTOCOL_VERSION, encrypted};
pub use peer::{FilePiece, MineQuery, PeerPublish, PeerRun};
pub use proof::{Proof, TokenRequest};
pub use publish::{Publication, PublishRequest, TOPIC_BROADCAST, TOPIC_GCM, TOPIC_SYNDIC, minion_topic};

/// Why a message is not one that is understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It is not msgpack.
    #[error("the message is not msgpack: {0}")]
    Unpack(#[from] UnpackError),
    /// A field is not there.
    #[error("the message has no field '{0}'")]
    Missing(&'static str),
    /// A field is of the wrong type or has a value that cannot be.
    #[error("the message's field '{field}' is wrong: {reason}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The command is not known.
    #[error("the command {} is not known", quoted(.0))]
    UnknownCommand(String),
    /// What the other side answers is not what was asked.
    #[error("the request was changed on its way: the answer is to another one")]
    Altered,
    /// A protocol version that is too old.
    #[error("protocol version {0} is too old")]
    OldVersion(i64),
}

/// How much of a message is quoted in errors about it.
const QUOTED: usize = 64;

/// Returns text of a message for an error: without control characters, and cut.
fn quoted(text: &str) -> String {
    let mut quoted: String = text.chars().take(QUOTED).flat_map(char::escape_debug).collect();
    if text.chars().nth(QUOTED).is_some() {
        quoted.push_str("...");
    }
    format!("'{quoted}'")
}

/// Returns the reason of an error that may quote a message: without control characters, and cut.
fn reason(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let mut reason: String = text.chars().take(4 * QUOTED).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(4 * QUOTED).is_some() {
        reason.push_str("...");
    }
    reason
}

/// Reads a field that must be there.
fn field<T: FromValue>(map: &Map, name: &'static str) -> Result<T, WireError> {
    let value = map.get(name).ok_or(WireError::Missing(name))?;
    T::try_from_value(value).map_err(|error| WireError::Field { field: name, reason: reason(&error) })
}

/// Reads a field that may be left out.
fn optional<T: FromValue>(map: &Map, name: &'static str) -> Result<Option<T>, WireError> {
    match map.get(name).filter(|value| !value.is_nil()) {
        None => Ok(None),
        Some(_) => field(map, name).map(Some),
    }
}

/// Reads a field as the type that its text parses to.
fn parsed<T>(map: &Map, name: &'static str) -> Result<T, WireError>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    let text: String = field(map, name)?;
    text.parse().map_err(|error: T::Err| WireError::Field { field: name, reason: reason(&error) })
}

#[cfg(test)]
mod tests;

use brine_value::msgpack::UnpackError;
use brine_value::{FromValue, Map};
