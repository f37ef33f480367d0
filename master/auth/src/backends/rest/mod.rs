//! `rest`: a web service, at the URL of the option `^url`, authenticates users. It receives a form POST with the fields
//! `username` and `password`; status 200 authenticates the user. A JSON list in the response body contains entries,
//! which are merged with those of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use brine_value::{Map, Value, json};
use ureq::Agent;

use super::{Backend, BackendError, Proven, tls};

/// The deadline of the response.
const DEADLINE: Duration = Duration::from_secs(10);
/// The maximum size of a response, in bytes.
const MAX_ANSWER: u64 = 1 << 20;

pub(super) struct Rest {
    url: String,
    ca_bundle: Option<PathBuf>,
    deadline: Duration,
}

impl Rest {
    pub fn new(options: &Map) -> Result<Self, BackendError> {
        let text = |name: &str| options.get(name).and_then(Value::as_str).map(str::to_owned);
        let invalid = |reason: &str| BackendError::Option { system: "rest", option: "^url", reason: reason.to_owned() };
        let url = text("^url").ok_or_else(|| invalid("is missing: expected the URL of a service"))?;
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err(invalid("is invalid: expected a URL with http:// or https://"));
        }
        Ok(Rest { url, ca_bundle: text("^ca_bundle").map(PathBuf::from), deadline: DEADLINE })
    }

    /// Creates the client. It neither follows redirects nor uses proxies, so that no other host receives the password.
    fn agent(&self) -> Result<Agent, String> {
        let mut config = brine_tls::http_client(self.deadline).proxy(None);
        if self.url.starts_with("https://") {
            let trusted = tls::authorities(self.ca_bundle.as_deref())?;
            config = config.tls_config(brine_tls::http_tls(&trusted, false));
        }
        Ok(config.build().into())
    }

    fn request(&self, user: &str, password: &str) -> Result<Option<Vec<Value>>, String> {
        let fields = [("username", user), ("password", password)];
        let mut answer = self.agent()?.post(&self.url).send_form(fields).map_err(|error| error.to_string())?;
        if answer.status() != 200 {
            tracing::info!(status = answer.status().as_u16(), "the service of external_auth rest refuses a user");
            return Ok(None);
        }
        let body = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_string();
        let body = body.map_err(|error| error.to_string())?;
        if body.trim().is_empty() {
            return Ok(Some(Vec::new()));
        }
        match json::from_json(&body) {
            Ok(Value::List(entries)) => Ok(Some(entries)),
            Ok(Value::Nil) => Ok(Some(Vec::new())),
            _ => Err("its answer is invalid: expected a JSON list of entries".to_owned()),
        }
    }

    /// Returns the URL without credentials and query.
    fn url_without_login(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let host = authority.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{host}{}", path.split(['?', '#']).next().unwrap_or_default())
    }
}

impl Backend for Rest {
    fn authenticate(&self, user: &str, password: &str) -> Result<Option<Proven>, BackendError> {
        let failed = |reason| BackendError::Server { server: self.url_without_login(), reason };
        let entries = self.request(user, password).map_err(failed)?;
        Ok(entries.map(|entries| Proven { entries: Some(entries), ..Proven::default() }))
    }
}

#[cfg(test)]
mod tests;
