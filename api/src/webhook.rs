//! Secrets of webhooks: the sender authenticates by an HMAC of the body with the secret of the path.

use axum::http::HeaderMap;
use base64::Engine as _;
use brine_crypt::token::constant_time_eq;
use brine_digest::{Digest, hex};
use brine_text::glob::Glob;
use brine_value::Map;

/// The headers that may carry a signature, in order of precedence; the first one is GitHub's.
const HEADERS: &[&str] = &["x-hub-signature-256", "x-signature-256", "x-signature"];

/// The secrets, each with a glob of paths.
pub(crate) struct Secrets(Vec<(Glob, String)>);

/// The result of a signature check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signature {
    /// The path requires no signature.
    NotNeeded,
    /// The signature is valid.
    Valid,
    /// The signature is missing or wrong.
    Invalid,
}

impl Secrets {
    /// Parses `webhook_secrets`.
    pub fn new(configured: &Map) -> Result<Self, String> {
        let secret = |(pattern, secret): (&brine_value::Value, &brine_value::Value)| {
            let pattern = pattern.to_string();
            let glob = Glob::new(pattern.trim_matches('/')).map_err(|error| error.to_string())?;
            let secret = secret.as_str().filter(|secret| !secret.is_empty());
            let secret =
                secret.ok_or_else(|| format!("the secret of '{pattern}' is not a string: put it in quotes"))?;
            Ok((glob, secret.to_owned()))
        };
        configured.iter().map(secret).collect::<Result<_, String>>().map(Secrets)
    }

    /// Whether a path has a secret, in which case no login is required.
    pub fn has(&self, path: &str) -> bool {
        self.0.iter().any(|(glob, _)| glob.is_match(path))
    }

    /// Checks the signature of a request for a path below the webhook URL. If several patterns match, any of their
    /// secrets is valid.
    pub fn check(&self, path: &str, headers: &HeaderMap, body: &[u8]) -> Signature {
        let mut secrets = self.0.iter().filter(|(glob, _)| glob.is_match(path)).peekable();
        if secrets.peek().is_none() {
            return Signature::NotNeeded;
        }
        let shown = HEADERS.iter().find_map(|name| headers.get(*name)).and_then(|value| value.to_str().ok());
        let Some(shown) = shown else { return Signature::Invalid };
        let shown = shown.strip_prefix("sha256=").unwrap_or(shown).trim();
        let fits = |secret: &str| {
            let Ok(expected) = Digest::Sha256.hmac(secret.as_bytes(), body) else { return false };
            let in_base64 = base64::engine::general_purpose::STANDARD.encode(&expected);
            constant_time_eq(shown.to_ascii_lowercase(), hex(&expected)) || constant_time_eq(shown, in_base64)
        };
        if secrets.any(|(_, secret)| fits(secret)) { Signature::Valid } else { Signature::Invalid }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::map;

    #[test]
    fn a_path_with_a_secret_needs_the_signature_of_its_body() {
        let secrets = Secrets::new(&map! {"github/*" => "it's a secret", "/github/x/" => "other"}).unwrap();
        let of = |secret: &str| hex(Digest::Sha256.hmac(secret.as_bytes(), b"body").unwrap());
        let valid = of("it's a secret");
        for (path, header, expected) in [
            ("travis/build", None, Signature::NotNeeded),
            ("github/push", None, Signature::Invalid),
            ("github/push", Some(("x-hub-signature-256", format!("sha256={valid}"))), Signature::Valid),
            ("github/push", Some(("x-signature", valid.clone())), Signature::Valid),
            ("github/push", Some(("x-signature", valid.to_uppercase())), Signature::Valid),
            ("github/push", Some(("x-signature", of("other"))), Signature::Invalid),
            ("github/x", Some(("x-signature", of("other"))), Signature::Valid),
            ("github/push", Some(("x-signature", String::new())), Signature::Invalid),
        ] {
            let headers: HeaderMap =
                header.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            assert_eq!(secrets.check(path, &headers, b"body"), expected, "{path} {header:?}");
        }
        assert!(Secrets::new(&map! {"a" => 5}).is_err());
    }
}
