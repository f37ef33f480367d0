//! Secrets of webhooks: the sender authenticates by an HMAC with the secret of the path.
//!
//! There are two schemes. A signature of the request covers a timestamp, the path and the body. A signature of the body
//! alone, as GitHub's, is valid for each path of its secret, so it is accepted for single paths, and for a pattern only
//! if the configuration says so. [`replays`] keeps requests from being repeated.

pub(crate) mod replays;

use axum::http::HeaderMap;
use base64::Engine as _;
use brine_crypt::token::constant_time_eq;
use brine_digest::{Digest, hex};
use brine_text::glob::{Glob, GlobError};
use brine_value::{Map, Value};

/// The headers that may carry a signature of the body, in order of precedence; the first one is GitHub's.
const BODY_HEADERS: &[&str] = &["x-hub-signature-256", "x-signature-256", "x-signature"];
/// The headers of a signature of the request.
const REQUEST_HEADER: &str = "x-brine-signature";
const TIMESTAMP_HEADER: &str = "x-brine-timestamp";

/// The secret of a pattern of paths.
struct Secret {
    pattern: Glob,
    secret: String,
    /// Whether a signature of the body alone is accepted.
    accepts_body: bool,
    /// Whether equal requests are separate events, for senders that sign the body alone and repeat it on purpose.
    accepts_repeats: bool,
}

/// The error of an entry of `webhook_secrets`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SecretError {
    /// The pattern of paths is invalid.
    #[error(transparent)]
    Pattern(#[from] GlobError),
    /// The secret is missing or not a string.
    #[error("the secret of '{0}' is not a string: put it in quotes")]
    NoText(String),
    /// An option has an invalid value.
    #[error("'{option}' of '{path}' is invalid: expected {expected}, got '{got}'")]
    Value { option: &'static str, path: String, expected: &'static str, got: String },
    /// An option is unknown.
    #[error("'{option}' of '{path}' is unknown: expected one of secret, signs, repeats")]
    Unknown { option: String, path: String },
    /// A signature for one path would be valid for another one.
    #[error(
        "'{first}' and '{second}' have the same secret, so a signature of the body for one would be valid for the other: \
         choose different secrets, or set 'signs: request'"
    )]
    Shared { first: String, second: String },
}

/// The secrets.
pub(crate) struct Secrets {
    all: Vec<Secret>,
    /// The maximum difference of a timestamp from this host's time, in seconds.
    max_age: u64,
}

/// The result of a signature check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Signature {
    /// The path requires no signature.
    NotNeeded,
    /// The signature is valid. A mark identifies the request, unless it may be repeated.
    Valid(Option<Mark>),
    /// The signature is missing or wrong, for this reason.
    Invalid(&'static str),
}

/// Identifies a signed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub id: [u8; 16],
    /// The timestamp, if it is signed, in seconds since the epoch.
    pub time: Option<u64>,
}

impl Mark {
    fn new(path: &str, signature: &[u8], time: Option<u64>) -> Self {
        let digest = Digest::Sha256.of([path.as_bytes(), b"\n", signature].concat());
        let mut id = [0; 16];
        id.iter_mut().zip(&digest).for_each(|(to, from)| *to = *from);
        Mark { id, time }
    }
}

impl Secret {
    fn parse(pattern: &Value, configured: &Value) -> Result<Self, SecretError> {
        let name = pattern.to_string();
        let path = name.trim_matches('/');
        let pattern = Glob::new(path)?;
        let secret = match configured {
            Value::Map(map) => map.get("secret").unwrap_or(&Value::Nil),
            secret => secret,
        };
        let secret = secret.as_str().filter(|secret| !secret.is_empty());
        let secret = secret.ok_or_else(|| SecretError::NoText(name.clone()))?;
        let has_wildcards = path.contains(['*', '?', '[']);
        let mut read =
            Secret { pattern, secret: secret.to_owned(), accepts_body: !has_wildcards, accepts_repeats: false };
        let invalid = |option, expected, got: &Value| {
            Err(SecretError::Value { option, path: name.clone(), expected, got: got.to_string() })
        };
        for (option, value) in configured.as_map().into_iter().flatten() {
            match (option.as_str().unwrap_or_default(), value) {
                ("secret", _) => {}
                ("signs", Value::Str(signs)) if signs == "body" => read.accepts_body = true,
                ("signs", Value::Str(signs)) if signs == "request" => read.accepts_body = false,
                ("signs", other) => return invalid("signs", "'body' or 'request'", other),
                ("repeats", Value::Bool(repeats)) => read.accepts_repeats = *repeats,
                ("repeats", other) => return invalid("repeats", "True or False", other),
                (other, _) => return Err(SecretError::Unknown { option: other.to_owned(), path: name.clone() }),
            }
        }
        Ok(read)
    }

    fn hmac(&self, signed: &[u8]) -> Option<Vec<u8>> {
        Digest::Sha256.hmac(self.secret.as_bytes(), signed).ok()
    }
}

/// Whether a shown signature, in hexadecimal or base64, is this one.
fn is_signature(signature: &str, expected: &[u8]) -> bool {
    let signature = signature.strip_prefix("sha256=").unwrap_or(signature).trim();
    let in_base64 = base64::engine::general_purpose::STANDARD.encode(expected);
    constant_time_eq(signature.to_ascii_lowercase(), hex(expected)) || constant_time_eq(signature, in_base64)
}

fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

impl Secrets {
    /// Parses `webhook_secrets`. `max_age` is `webhook_max_age`.
    ///
    /// # Errors
    /// An entry is invalid, or a signature for one path would be valid for another one.
    pub fn new(configured: &Map, max_age: u64) -> Result<Self, SecretError> {
        let all = configured.iter().map(|(pattern, configured)| Secret::parse(pattern, configured));
        let all: Vec<Secret> = all.collect::<Result<_, SecretError>>()?;
        let names: Vec<String> = configured.keys().map(ToString::to_string).collect();
        for (number, one) in all.iter().enumerate().filter(|(_, one)| one.accepts_body) {
            let before = all[..number].iter().position(|other| other.accepts_body && other.secret == one.secret);
            if let Some(before) = before {
                return Err(SecretError::Shared { first: names[before].clone(), second: names[number].clone() });
            }
        }
        Ok(Secrets { all, max_age })
    }

    /// Whether a path has a secret, in which case no login is required.
    pub fn has(&self, path: &str) -> bool {
        self.all.iter().any(|secret| secret.pattern.is_match(path))
    }

    /// Checks the signature of a request for a path below the webhook URL, at this time in seconds since the epoch. If
    /// several patterns match, any of their secrets is valid.
    pub fn check(&self, path: &str, headers: &HeaderMap, body: &[u8], now: u64) -> Signature {
        let secrets: Vec<&Secret> = self.all.iter().filter(|secret| secret.pattern.is_match(path)).collect();
        if secrets.is_empty() {
            return Signature::NotNeeded;
        }
        if let Some(signature) = header_text(headers, REQUEST_HEADER) {
            return self.check_request(&secrets, path, headers, body, (signature, now));
        }
        let Some(signature) = BODY_HEADERS.iter().find_map(|name| header_text(headers, name)) else {
            return Signature::Invalid("it has no signature");
        };
        if !secrets.iter().any(|secret| secret.accepts_body) {
            return Signature::Invalid(
                "its signature covers the body alone: the secret is for several paths; sign the request (X-Brine-Signature), give the path a secret of its own, or set 'signs: body'",
            );
        }
        for secret in secrets.into_iter().filter(|secret| secret.accepts_body) {
            if let Some(expected) = secret.hmac(body).filter(|expected| is_signature(signature, expected)) {
                let mark = (!secret.accepts_repeats).then(|| Mark::new(path, &expected, None));
                return Signature::Valid(mark);
            }
        }
        Signature::Invalid("the signature of the body is wrong")
    }

    fn check_request(
        &self,
        secrets: &[&Secret],
        path: &str,
        headers: &HeaderMap,
        body: &[u8],
        (signature, now): (&str, u64),
    ) -> Signature {
        let timestamp = header_text(headers, TIMESTAMP_HEADER).unwrap_or_default();
        // Digits alone, as the text is signed.
        let is_number = !timestamp.is_empty() && timestamp.bytes().all(|byte| byte.is_ascii_digit());
        let Some(time) = timestamp.parse::<u64>().ok().filter(|_| is_number) else {
            return Signature::Invalid("X-Brine-Timestamp is missing: expected seconds since the epoch");
        };
        let signed = [timestamp.as_bytes(), b"\n", path.as_bytes(), b"\n", body].concat();
        let expected = secrets.iter().filter_map(|secret| secret.hmac(&signed));
        let Some(expected) = expected.into_iter().find(|expected| is_signature(signature, expected)) else {
            return Signature::Invalid("the signature of the request is wrong");
        };
        if time.abs_diff(now) > self.max_age {
            return Signature::Invalid("its timestamp differs from this host's time by more than webhook_max_age");
        }
        Signature::Valid(Some(Mark::new(path, &expected, Some(time))))
    }
}

#[cfg(test)]
mod tests;
