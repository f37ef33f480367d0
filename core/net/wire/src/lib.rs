//! The messages between minions, clients and the master: envelopes and typed commands.
//!
//! Bytes are parsed to an [`Envelope`], and its load to a [`MinionCommand`] or a [`ClientCommand`]. Permissions are
//! then decided by matching an enum. Names and fields are those of Salt's protocol, version 3.

#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "peers choose the numbers"
)]

mod auth;
mod command;
mod deferral;
mod envelope;
mod fields;
pub mod metrics;
mod peer;
pub mod private;
mod proof;
mod publish;
pub mod purpose;
pub mod signed;

pub use auth::{Accepted, AuthRefusal, AuthReply, AuthRequest, Binding};
pub use command::{Call, CatchUp, ClientCommand, Forwarded, HookEvent, ListKind, MinionCommand, MinionEvents};
pub use deferral::{MAX_DEFERRAL, deferral, deferred};
pub use envelope::{Envelope, PROTOCOL_VERSION, encrypted};
pub use fields::unknown_fields;
pub use peer::{FilePiece, MineQuery, PeerPublish, PeerRun};
pub use proof::{Proof, TokenRequest};
pub use publish::{
    IGNORES_JOB_FILES, Publication, PublishRequest, TOPIC_BROADCAST, TOPIC_GCM, TOPIC_SYNDIC, minion_topic,
};

/// The errors of invalid messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message is not msgpack.
    #[error("the message is not msgpack: {0}")]
    Unpack(#[from] UnpackError),
    /// A required field is missing.
    #[error("the message has no field '{0}'")]
    Missing(&'static str),
    /// A field has the wrong type or an invalid value.
    #[error("the message's field '{field}' is invalid: {reason}")]
    Field {
        /// The field.
        field: &'static str,
        /// The error.
        reason: String,
    },
    /// The command is unknown.
    #[error("unknown command {}", quoted(.0))]
    UnknownCommand(String),
    /// The reply does not belong to the request.
    #[error("the request was modified in transit: the reply answers another one")]
    Altered,
    /// The protocol version is not supported.
    #[error("protocol version {0} is too old")]
    OldVersion(i64),
}

/// The maximum number of characters of a message that errors quote.
const QUOTED: usize = 64;

/// Returns a text of a message for use in errors: truncated, and without control characters.
fn quoted(text: &str) -> String {
    let mut quoted: String = text.chars().take(QUOTED).flat_map(char::escape_debug).collect();
    if text.chars().nth(QUOTED).is_some() {
        quoted.push_str("...");
    }
    format!("'{quoted}'")
}

/// Returns an error's message, which may quote a peer's message: truncated, and without control characters.
fn reason(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let mut reason: String = text.chars().take(4 * QUOTED).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(4 * QUOTED).is_some() {
        reason.push_str("...");
    }
    reason
}

/// Parses a required field.
fn field<T: FromValue>(map: &Map, name: &'static str) -> Result<T, WireError> {
    let value = map.get(name).ok_or(WireError::Missing(name))?;
    T::try_from_value(value).map_err(|error| WireError::Field { field: name, reason: reason(&error) })
}

/// Parses an optional field.
fn optional<T: FromValue>(map: &Map, name: &'static str) -> Result<Option<T>, WireError> {
    match map.get(name).filter(|value| !value.is_nil()) {
        None => Ok(None),
        Some(_) => field(map, name).map(Some),
    }
}

/// Parses a field as a string, and the string as this type.
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
