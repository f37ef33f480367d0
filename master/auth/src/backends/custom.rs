//! Custom authentication modules: `auth` verifies the password; the optional functions `groups` and `acl` return the
//! groups and the entries of a user. The entries replace those of the configuration, as in Salt.

use std::sync::Arc;

use brine_value::{Value, map};

use super::{Backend, BackendError, CustomAuthModules, Proven};

/// The maximum number of groups or entries of a user; more are an error.
const MAX_ENTRIES: usize = 10_000;

pub(super) struct Custom {
    name: String,
    modules: Arc<dyn CustomAuthModules>,
}

impl Custom {
    pub fn new(name: &str, modules: Arc<dyn CustomAuthModules>) -> Self {
        Custom { name: name.to_owned(), modules }
    }

    fn failed(&self, reason: impl Into<String>) -> BackendError {
        BackendError::Module { module: self.name.clone(), reason: reason.into() }
    }

    fn call(&self, function: &str, user: &str, password: &str) -> Result<Option<Value>, BackendError> {
        let arguments = map! {"username" => user, "password" => password, "eauth" => self.name.as_str()};
        let called = self.modules.call(&format!("{}.{function}", self.name), arguments);
        called.transpose().map_err(|error| self.failed(error.cause()))
    }

    /// Calls an optional function; `None` if it is missing or returns nothing.
    fn list(&self, function: &str, user: &str, password: &str) -> Result<Option<Vec<Value>>, BackendError> {
        match self.call(function, user, password)? {
            None | Some(Value::Nil | Value::Bool(false)) => Ok(None),
            Some(Value::List(all)) if all.len() <= MAX_ENTRIES => Ok(Some(all)),
            Some(Value::List(all)) => {
                Err(self.failed(format!("'{function}' returned {} values, the limit is {MAX_ENTRIES}", all.len())))
            }
            Some(other) => {
                Err(self.failed(format!("'{function}' is invalid: expected a list, got {}", other.type_name())))
            }
        }
    }
}

impl Backend for Custom {
    fn authenticate(&self, user: &str, password: &str) -> Result<Option<Proven>, BackendError> {
        let answer = self.call("auth", user, password)?;
        let answer = answer.ok_or_else(|| self.failed("the module has no function 'auth'"))?;
        if !answer.is_truthy() {
            return Ok(None);
        }
        let groups = self.list("groups", user, password)?.unwrap_or_default();
        let entries = self.list("acl", user, password)?;
        let groups = groups.iter().map(ToString::to_string).collect();
        Ok(Some(Proven { name: None, groups, entries }))
    }

    fn replaces_entries(&self) -> bool {
        true
    }
}
