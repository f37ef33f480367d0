//! A token: its fields, its digest, and its encodings in the master's store and in Salt's format.

use brine_value::{Map, Value, map};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::eauth::Identity;

/// A valid token.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// The user. Its entries are set if they are fixed at creation of the token (`keep_acl_in_token`).
    pub identity: Identity,
    /// The time of creation.
    pub start: Timestamp,
    /// The expiry time.
    pub expire: Timestamp,
    /// Whether the token has files for Salt's programs, without which it is revoked.
    pub has_files: bool,
}

/// A new token with its secret.
#[derive(Debug, Clone, PartialEq)]
pub struct NewToken {
    /// The secret: 64 hexadecimal digits. It is not stored.
    pub secret: String,
    /// The token.
    pub token: Token,
}

/// Returns the digest under which a token is stored and listed: that of its secret, in hexadecimal.
pub(super) fn digest(secret: &str) -> String {
    brine_digest::hex(Sha256::digest(secret))
}

impl Token {
    /// Returns the fields for the master's store.
    pub(super) fn to_map(&self) -> Map {
        map! {
            "name" => self.identity.username.as_str(),
            "eauth" => &self.identity.eauth,
            "groups" => self.identity.groups.clone(),
            "auth_list" => self.identity.entries.clone(),
            "start" => self.start.as_millisecond(),
            "expire" => self.expire.as_millisecond(),
            "has_files" => self.has_files,
        }
    }

    /// Decodes the fields in the master's store.
    pub(super) fn from_map(map: &Map) -> Option<Self> {
        let time = |name: &str| match map.get(name) {
            Some(Value::Int(millisecond)) => Timestamp::from_millisecond(*millisecond).ok(),
            _ => None,
        };
        Some(Token {
            identity: Identity::of_token(map)?,
            start: time("start")?,
            expire: time("expire")?,
            has_files: map.get("has_files").is_some_and(Value::is_truthy),
        })
    }

    /// Returns the data in Salt's format, for a custom store and for files.
    pub(super) fn to_salt(&self) -> Map {
        let seconds = |time: Timestamp| time.as_millisecond() as f64 / 1000.0;
        let identity = &self.identity;
        let mut data = map! {
            "start" => seconds(self.start),
            "expire" => seconds(self.expire),
            "name" => identity.username.as_str(),
            "eauth" => &identity.eauth,
        };
        if let Some(entries) = &identity.entries {
            data.insert("auth_list".into(), Value::List(entries.clone()));
        }
        if !identity.groups.is_empty() {
            data.insert("groups".into(), identity.groups.clone().into());
        }
        data
    }

    /// Decodes data in Salt's format.
    pub(super) fn from_salt(data: &Map) -> Option<Self> {
        let time = |name: &str| {
            let seconds = match data.get(name)? {
                Value::Int(seconds) => *seconds as f64,
                Value::Float(seconds) => *seconds,
                _ => return None,
            };
            // Saturates: a time out of range counts as the last representable one.
            Some(Timestamp::from_millisecond((seconds * 1000.0) as i64).unwrap_or(Timestamp::MAX))
        };
        let expire = time("expire")?;
        Some(Token {
            identity: Identity::of_token(data)?,
            start: time("start").unwrap_or(expire),
            expire,
            has_files: false,
        })
    }
}
