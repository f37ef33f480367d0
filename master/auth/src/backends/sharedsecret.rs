//! `sharedsecret`: one password for all users, from the master option of the same name. Intended for proxies that
//! authenticate users themselves.

use brine_crypt::token::constant_time_eq;
use brine_value::{Map, Value};

use super::{Backend, BackendError, Proven};

pub(super) struct SharedSecret(String);

impl SharedSecret {
    pub fn new(options: &Map) -> Result<Self, BackendError> {
        match options.get("sharedsecret").and_then(Value::as_str) {
            Some(secret) if !secret.is_empty() => Ok(SharedSecret(secret.to_owned())),
            _ => Err(BackendError::Option {
                system: "sharedsecret",
                option: "sharedsecret",
                reason: "the master's option is missing or not a string".to_owned(),
            }),
        }
    }
}

impl Backend for SharedSecret {
    fn authenticate(&self, _user: &str, password: &str) -> Result<Option<Proven>, BackendError> {
        Ok(constant_time_eq(password, &self.0).then(Proven::default))
    }
}
