//! The HTTP client of returners: JSON and forms, TLS with verified certificates, timeouts, bounded replies, and errors
//! without secrets.
//!
//! It blocks, as returners do. Neither paths nor queries are in its errors: they contain tokens of some services.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_value::{Value, json};
use ureq::{Agent, Error};

use crate::connection::TIMEOUT;
use crate::{Options, ReturnerError};

/// The timeout of a request with its reply.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of a reply, in bytes: it is held in memory.
const MAX_REPLY: u64 = 256 << 20;
/// The number of characters of a reply that errors show.
const EXCERPT_LENGTH: usize = 300;

/// A client of one service.
pub(crate) struct Http {
    returner: &'static str,
    agent: Agent,
    /// The URL in front of all paths, without a `/` at its end.
    base: String,
    headers: Vec<(String, String)>,
}

/// A body and its type.
pub(crate) enum Body<'a> {
    Nothing,
    Json(&'a Value),
    /// A form, as names and values.
    Form(&'a [(&'a str, &'a str)]),
    /// A text and its content type.
    Text(&'static str, String),
}

/// The status and the text of a reply.
pub(crate) struct Reply {
    pub status: u16,
    pub text: String,
}

impl Reply {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The verification of a service's certificates.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// The file of the trusted authorities, in place of `ca_bundle` and the host's own.
    pub authorities: Option<std::path::PathBuf>,
    /// Whether certificates are not verified.
    pub skip_verification: bool,
}

impl Http {
    /// Creates a client of the service at a URL with `http://` or `https://`. No connection is opened. Redirects are
    /// not followed: no other host may receive the data and its credentials.
    pub fn new(
        returner: &'static str,
        option: &str,
        url: &str,
        trust: Trust,
        options: &Options,
    ) -> Result<Self, ReturnerError> {
        let invalid = |reason: String| ReturnerError::Option { option: format!("{returner}.{option}"), reason };
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let Some(rest) = rest.filter(|rest| !rest.is_empty()) else {
            return Err(invalid("it is invalid: expected a URL with http:// or https://".to_owned()));
        };
        let mut config = brine_tls::http_client(REQUEST_TIMEOUT).timeout_connect(Some(TIMEOUT));
        if url.starts_with("https://") {
            let file = trust.authorities.map_or_else(|| options.ca_bundle(), |path| Ok(Some(path)))?;
            let trusted = brine_tls::authorities(file.as_deref()).map_err(|error| invalid(error.to_string()))?;
            config = config.tls_config(brine_tls::http_tls(&trusted, trust.skip_verification));
        }
        let mut http = Http {
            returner,
            agent: config.build().into(),
            base: url.trim_end_matches('/').to_owned(),
            headers: Vec::new(),
        };
        // Credentials in the URL become a header.
        let end = rest.find('/').unwrap_or(rest.len());
        if let Some(at) = rest[..end].rfind('@') {
            let (login, host) = (rest[..at].to_owned(), &rest[at + 1..]);
            let scheme = &url[..url.len() - rest.len()];
            http.base = format!("{scheme}{}", host.trim_end_matches('/'));
            let (user, password) = login.split_once(':').unwrap_or((&login, ""));
            http = http.with_login(user, password);
        }
        Ok(http)
    }

    /// Adds a header to each request.
    pub fn with_header(mut self, name: &str, value: String) -> Self {
        self.headers.push((name.to_owned(), value));
        self
    }

    /// Adds a user name and a password to each request.
    pub fn with_login(self, user: &str, password: &str) -> Self {
        self.with_header("Authorization", format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
    }

    /// Returns the URL of the server without its path, for messages.
    pub fn shown(&self) -> String {
        let start = self.base.find("://").map_or(0, |at| at + 3);
        let end = self.base[start..].find('/').map_or(self.base.len(), |at| start + at);
        self.base[..end].to_owned()
    }

    /// Creates the error of a request.
    pub fn failed(&self, reason: String, is_outage: bool) -> ReturnerError {
        ReturnerError::Server { returner: self.returner, server: self.shown(), reason, is_outage }
    }

    /// Sends a request and returns its reply, even if its status is an error.
    ///
    /// # Errors
    /// The server was not reached, or its reply is too large.
    pub fn ask(&self, method: &str, path: &str, body: &Body<'_>) -> Result<Reply, ReturnerError> {
        self.ask_with(method, path, body, None)
    }

    /// Sends a request as [`Http::ask`] does, with one more header.
    pub fn ask_with(
        &self,
        method: &str,
        path: &str,
        body: &Body<'_>,
        header: Option<(&str, &str)>,
    ) -> Result<Reply, ReturnerError> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(header) {
            request = request.header(name, value);
        }
        let (kind, text) = match body {
            Body::Nothing => (None, String::new()),
            Body::Json(value) => (Some("application/json"), json::to_json(value)),
            Body::Form(fields) => {
                let encoded = form_urlencoded::Serializer::new(String::new()).extend_pairs(*fields).finish();
                (Some("application/x-www-form-urlencoded"), encoded)
            }
            Body::Text(kind, text) => (Some(*kind), text.clone()),
        };
        if let Some(kind) = kind {
            request = request.header("Content-Type", kind);
        }
        // The error of the builder would show the URL or a header.
        let invalid = |_| self.failed("the URL or a header is invalid".to_owned(), false);
        let sent = match kind {
            None => request.body(()).map_err(invalid).map(|request| self.agent.run(request)),
            Some(_) => request.body(text).map_err(invalid).map(|request| self.agent.run(request)),
        };
        let mut reply = sent?.map_err(|error| self.failed(reason(&error), is_outage(&error)))?;
        let text = reply.body_mut().with_config().limit(MAX_REPLY).lossy_utf8(true).read_to_string();
        let text = text.map_err(|error| self.failed(reason(&error), is_outage(&error)))?;
        Ok(Reply { status: reply.status().as_u16(), text })
    }

    /// Sends a request and returns the reply if it is a success.
    ///
    /// # Errors
    /// The errors of [`Http::ask`], and replies with an error status.
    pub fn send(&self, method: &str, path: &str, body: &Body<'_>) -> Result<Reply, ReturnerError> {
        let reply = self.ask(method, path, body)?;
        if reply.is_success() { Ok(reply) } else { Err(self.refusal(&reply)) }
    }

    /// Sends a request and returns the JSON of its reply.
    ///
    /// # Errors
    /// The errors of [`Http::send`], and replies that are not JSON.
    pub fn send_json(&self, method: &str, path: &str, body: &Body<'_>) -> Result<Value, ReturnerError> {
        let reply = self.send(method, path, body)?;
        self.json(&reply)
    }

    /// Parses the JSON of a reply.
    pub fn json(&self, reply: &Reply) -> Result<Value, ReturnerError> {
        json::from_json(&reply.text).map_err(|error| self.failed(format!("its reply is not JSON: {error}"), false))
    }

    /// Creates the error of a reply with an error status.
    pub fn refusal(&self, reply: &Reply) -> ReturnerError {
        let is_outage = matches!(reply.status, 408 | 429 | 502..=504);
        self.failed(format!("status {}: {}", reply.status, excerpt(&reply.text)), is_outage)
    }
}

/// Returns the beginning of a reply on one line, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(EXCERPT_LENGTH).collect();
    if line.is_empty() { "no text".to_owned() } else { line }
}

fn is_outage(error: &Error) -> bool {
    !matches!(error, Error::Http(_) | Error::BadUri(_) | Error::BodyExceedsLimit(_) | Error::Protocol(_))
}

fn reason(error: &Error) -> String {
    match error {
        Error::BadUri(_) => "the URL is invalid".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
