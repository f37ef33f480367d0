//! Tokens in a custom store (`eauth_tokens`): their data in Salt's format, and the checks for accepting them.

use std::time::Duration;

use brine_value::{Map, Value, map};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::eauth::Identity;
use crate::tokens::{NewToken, Token};

/// The maximum number of listed tokens.
const MAX_LISTED: usize = 10_000;
/// The maximum length of a token in bytes.
const MAX_LENGTH: usize = 1024;

/// A custom token store, implemented by a module of `_tokens`.
pub trait CustomTokens: Send + Sync {
    /// Calls `mk_token`, `get_token`, `list_tokens` or `rm_token` with the options of the master, followed by `args`.
    ///
    /// # Errors
    /// A message with the reason.
    fn call(&self, function: &'static str, args: Vec<Value>) -> Result<Value, String>;
}

/// Returns whether a token may be passed to a store: many build a path or a key from it.
fn is_valid(secret: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~+=".contains(&byte);
    (1..=MAX_LENGTH).contains(&secret.len()) && !secret.starts_with('.') && secret.bytes().all(is_plain)
}

pub(crate) fn create(
    custom: &dyn CustomTokens,
    identity: Identity,
    valid: Duration,
    now: Timestamp,
) -> Result<NewToken, String> {
    let expire = now.checked_add(valid).unwrap_or(Timestamp::MAX);
    let token = Token { identity, start: now, expire, has_files: false };
    let made = custom.call("mk_token", vec![to_map(&token).into()])?;
    let secret = match made.get("token").and_then(Value::as_str) {
        Some(secret) => secret.to_owned(),
        None => return Err("mk_token returned no token".to_owned()),
    };
    if !is_valid(&secret) {
        return Err(format!(
            "mk_token returned an invalid token: expected 1 to {MAX_LENGTH} letters, digits and '-_.~+='"
        ));
    }
    Ok(NewToken { secret, token })
}

/// Returns a token if it is valid. An expired token is removed.
pub(crate) fn get(custom: &dyn CustomTokens, secret: &str, now: Timestamp) -> Result<Option<Token>, String> {
    if !is_valid(secret) {
        return Ok(None);
    }
    let found = custom.call("get_token", vec![secret.into()]).map_err(|reason| redacted(&reason, secret))?;
    let Some(token) = found.as_map().and_then(from_map) else { return Ok(None) };
    if now < token.expire {
        return Ok(Some(token));
    }
    revoke(custom, secret)?;
    Ok(None)
}

pub(crate) fn revoke(custom: &dyn CustomTokens, secret: &str) -> Result<(), String> {
    custom.call("rm_token", vec![secret.into()]).map(|_| ()).map_err(|reason| redacted(&reason, secret))
}

/// Returns all valid tokens with their secrets. Expired tokens are removed.
pub(crate) fn list(custom: &dyn CustomTokens, now: Timestamp) -> Result<Vec<(String, Token)>, String> {
    let listed = custom.call("list_tokens", Vec::new())?;
    let mut found = Vec::new();
    for secret in listed.as_list().unwrap_or_default().iter().filter_map(Value::as_str).take(MAX_LISTED) {
        if let Some(token) = get(custom, secret, now)? {
            found.push((secret.to_owned(), token));
        }
    }
    Ok(found)
}

/// Removes expired tokens. Returns their number.
pub(crate) fn remove_expired(custom: &dyn CustomTokens, now: Timestamp) -> Result<usize, String> {
    let listed = custom.call("list_tokens", Vec::new())?;
    let mut removed = 0;
    for secret in listed.as_list().unwrap_or_default().iter().filter_map(Value::as_str).take(MAX_LISTED) {
        // Data without an expiry time is kept: it may belong to another program.
        if !is_valid(secret) {
            continue;
        }
        let found = custom.call("get_token", vec![secret.into()]).map_err(|reason| redacted(&reason, secret))?;
        if found.as_map().and_then(from_map).is_some_and(|token| token.expire <= now) {
            revoke(custom, secret)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Returns the digest under which a token is listed.
pub(crate) fn digest(secret: &str) -> String {
    brine_digest::hex(Sha256::digest(secret))
}

/// Removes a token from an error message, which is logged.
fn redacted(reason: &str, secret: &str) -> String {
    reason.replace(secret, "<token>")
}

/// Returns the data of a token in Salt's format.
pub(crate) fn to_map(token: &Token) -> Map {
    let seconds = |time: Timestamp| time.as_millisecond() as f64 / 1000.0;
    let identity = &token.identity;
    let mut data = map! {
        "start" => seconds(token.start),
        "expire" => seconds(token.expire),
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

fn from_map(data: &Map) -> Option<Token> {
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

#[cfg(test)]
mod tests;
