//! Credentials of clients other than a key of the master.

use std::fmt;
use std::ops::RangeInclusive;

use brine_value::Map;

use super::{WireError, field, optional};

/// A user's credentials.
#[derive(Clone, PartialEq, Eq)]
pub enum Proof {
    /// A token from an earlier authentication.
    Token(String),
    /// User name and password for an `external_auth` module.
    Password {
        /// The `external_auth` module.
        eauth: String,
        /// The user's name.
        username: String,
        /// The user's password.
        password: String,
    },
}

/// Shows the user, but never the secret.
impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proof::Token(_) => f.write_str("Token"),
            Proof::Password { eauth, username, .. } => write!(f, "Password of {username:?} by {eauth:?}"),
        }
    }
}

impl Proof {
    /// Parses the fields `token`, or `eauth`, `username` and `password`.
    pub fn from_map(map: &Map) -> Result<Option<Self>, WireError> {
        if let Some(token) = optional(map, "token")? {
            return Ok(Some(Proof::Token(token)));
        }
        let Some(eauth) = optional(map, "eauth")? else { return Ok(None) };
        let username = optional(map, "username")?.unwrap_or_default();
        let password = optional(map, "password")?.unwrap_or_default();
        Ok(Some(Proof::Password { eauth, username, password }))
    }

    /// As [`Proof::from_map`], but removes the fields from the map, so that they are not passed on.
    pub(super) fn take(map: &mut Map) -> Result<Option<Self>, WireError> {
        let proof = Proof::from_map(map)?;
        if proof.is_some() {
            map.retain(|name, _| !matches!(name.as_str(), Some("token" | "eauth" | "username" | "password")));
        }
        Ok(proof)
    }

    /// Adds the fields to a map.
    pub fn write(&self, map: &mut Map) {
        let mut put = |name: &str, value: &str| _ = map.insert(name.into(), value.into());
        match self {
            Proof::Token(token) => put("token", token),
            Proof::Password { eauth, username, password } => {
                put("eauth", eauth);
                put("username", username);
                put("password", password);
            }
        }
    }
}

/// A user's request for a token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenRequest {
    /// User name and password.
    pub proof: Proof,
    /// The requested lifetime in seconds, if the user may choose it.
    pub expire: Option<f64>,
}

impl TokenRequest {
    /// The lifetimes that a user may ask for, in seconds: up to ten years.
    pub const EXPIRE: RangeInclusive<f64> = 1.0..=315_360_000.0;

    /// Parses the fields of a `mk_token` command.
    pub fn from_map(map: &Map) -> Result<Self, WireError> {
        let proof = Proof::Password {
            eauth: field(map, "eauth")?,
            username: field(map, "username")?,
            password: optional(map, "password")?.unwrap_or_default(),
        };
        let expire: Option<f64> = optional(map, "token_expire")?;
        if let Some(seconds) = expire.filter(|seconds| !Self::EXPIRE.contains(seconds)) {
            let reason = format!("expected {} to {} seconds, got {seconds}", Self::EXPIRE.start(), Self::EXPIRE.end());
            return Err(WireError::Field { field: "token_expire", reason });
        }
        Ok(TokenRequest { proof, expire })
    }

    /// Returns the fields of the `mk_token` command.
    pub fn to_map(&self) -> Map {
        let mut map = brine_value::map! {"cmd" => "mk_token"};
        self.proof.write(&mut map);
        if let Some(expire) = self.expire {
            map.insert("token_expire".into(), expire.into());
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::{Value, map};

    #[test]
    fn lifetimes_of_tokens_are_positive_and_bounded() {
        for (expire, accepted) in [
            (Value::Nil, true),
            (1.into(), true),
            (43_200.5.into(), true),
            (315_360_000.into(), true),
            (0.into(), false),
            ((-5).into(), false),
            (1e12.into(), false),
            (f64::NAN.into(), false),
            (f64::INFINITY.into(), false),
        ] {
            let fields = map! {"eauth" => "file", "username" => "fred", "token_expire" => expire.clone()};
            assert_eq!(TokenRequest::from_map(&fields).is_ok(), accepted, "{expire}");
        }
    }

    #[test]
    fn proofs_leave_no_secret_behind() {
        let password = Proof::Password { eauth: "file".into(), username: "fred".into(), password: "hunter2".into() };
        for proof in [Proof::Token("abc".into()), password] {
            let mut fields = map! {"delimiter" => ":"};
            proof.write(&mut fields);
            assert!(fields.len() > 1);
            assert_eq!(Proof::take(&mut fields), Ok(Some(proof.clone())));
            assert_eq!(fields, map! {"delimiter" => ":"});
            let output = format!("{proof:?}");
            assert!(!output.contains("abc") && !output.contains("hunter2"), "{output}");
        }
        let mut none = map! {"username" => "x", "password" => "for a function"};
        assert_eq!(Proof::take(&mut none), Ok(None));
        assert_eq!(none.len(), 2);
    }
}
