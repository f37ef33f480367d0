//! Tokens in a custom store (`eauth_tokens`), and the checks for accepting them.

use std::time::Duration;

use brine_function::CallError;
use brine_value::Value;
use jiff::Timestamp;

use super::token::{NewToken, Token};
use crate::eauth::Identity;

/// The maximum number of listed tokens.
const MAX_LISTED: usize = 10_000;
/// The maximum length of a token in bytes.
const MAX_LENGTH: usize = 1024;

/// A custom token store, implemented by a module of `_tokens`.
pub trait CustomTokens: Send + Sync {
    /// Calls `mk_token`, `get_token`, `list_tokens` or `rm_token` with the options of the master, followed by `args`.
    ///
    /// # Errors
    /// That of the function.
    fn call(&self, function: &'static str, args: Vec<Value>) -> Result<Value, CallError>;
}

/// Returns whether a token may be passed to a store: many build a path or a key from it.
fn is_valid(secret: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~+=".contains(&byte);
    (1..=MAX_LENGTH).contains(&secret.len()) && !secret.starts_with('.') && secret.bytes().all(is_plain)
}

pub(super) fn create(
    custom: &dyn CustomTokens,
    identity: Identity,
    valid: Duration,
    now: Timestamp,
) -> Result<NewToken, String> {
    let expire = now.checked_add(valid).unwrap_or(Timestamp::MAX);
    let token = Token { identity, start: now, expire, has_files: false };
    let made = custom.call("mk_token", vec![token.to_salt().into()]).map_err(CallError::cause)?;
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
pub(super) fn get(custom: &dyn CustomTokens, secret: &str, now: Timestamp) -> Result<Option<Token>, String> {
    if !is_valid(secret) {
        return Ok(None);
    }
    let reply = custom.call("get_token", vec![secret.into()]).map_err(|error| redacted(error, secret))?;
    let Some(token) = reply.as_map().and_then(Token::from_salt) else { return Ok(None) };
    if now < token.expire {
        return Ok(Some(token));
    }
    revoke(custom, secret)?;
    Ok(None)
}

pub(super) fn revoke(custom: &dyn CustomTokens, secret: &str) -> Result<(), String> {
    custom.call("rm_token", vec![secret.into()]).map(|_| ()).map_err(|error| redacted(error, secret))
}

/// Returns all valid tokens with their secrets. Expired tokens are removed.
pub(super) fn list(custom: &dyn CustomTokens, now: Timestamp) -> Result<Vec<(String, Token)>, String> {
    let listed = custom.call("list_tokens", Vec::new()).map_err(CallError::cause)?;
    let mut tokens = Vec::new();
    for secret in listed.as_list().unwrap_or_default().iter().filter_map(Value::as_str).take(MAX_LISTED) {
        if let Some(token) = get(custom, secret, now)? {
            tokens.push((secret.to_owned(), token));
        }
    }
    Ok(tokens)
}

/// Removes expired tokens. Returns their number.
pub(super) fn remove_expired(custom: &dyn CustomTokens, now: Timestamp) -> Result<usize, String> {
    let listed = custom.call("list_tokens", Vec::new()).map_err(CallError::cause)?;
    let mut removed = 0;
    for secret in listed.as_list().unwrap_or_default().iter().filter_map(Value::as_str).take(MAX_LISTED) {
        // Data without an expiry time is kept: it may belong to another program.
        if !is_valid(secret) {
            continue;
        }
        let reply = custom.call("get_token", vec![secret.into()]).map_err(|error| redacted(error, secret))?;
        if reply.as_map().and_then(Token::from_salt).is_some_and(|token| token.expire <= now) {
            revoke(custom, secret)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Returns the message of an error, which is logged, without the token.
fn redacted(error: CallError, secret: &str) -> String {
    error.cause().replace(secret, "<token>")
}

#[cfg(test)]
mod tests;
