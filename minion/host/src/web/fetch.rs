//! Fetches files from web servers. Only a whole file is a file: neither a redirect nor a part, nor an answer without content.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use ureq::http::Request;
use ureq::http::header::{ETAG, IF_NONE_MATCH};

use super::{Access, Client, Options, Response, WebError, body};

/// The time without a single byte after which a fetch fails.
const SILENCE: Duration = Duration::from_secs(300);

/// The result of a conditional fetch.
#[derive(Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The server's entity tag is still the given one; nothing was written.
    Unchanged,
    /// The whole file was written.
    Whole {
        /// The entity tag, if there is one.
        etag: Option<String>,
    },
}

/// Why a file was not fetched. The message has the path of the URL, and nothing of its host and login.
#[derive(Debug)]
pub struct FetchError {
    /// The cause.
    pub error: WebError,
    path: String,
}

impl FetchError {
    fn new(error: WebError, url: &str) -> Self {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        FetchError { error, path: rest.find('/').map_or("/", |at| &rest[at..]).to_owned() }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            error @ (WebError::Bundle { .. } | WebError::Proxy { .. }) => write!(f, "{error}"),
            error => write!(f, "Error: {error} reading {}", self.path),
        }
    }
}

impl std::error::Error for FetchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Fetches a URL into memory.
///
/// # Errors
/// The server does not answer, refuses, or has no whole file.
pub fn fetch(access: &Access, url: &str) -> Result<Vec<u8>, FetchError> {
    fetch_from(access, url, false)
}

/// Fetches like [`fetch`]; with `trust_anyone`, without verifying the certificate.
///
/// # Errors
/// As for [`fetch`].
pub fn fetch_from(access: &Access, url: &str, trust_anyone: bool) -> Result<Vec<u8>, FetchError> {
    let fetched = requested(access, url, trust_anyone, None).and_then(|mut response| {
        whole(&response)?;
        body::read(&mut response, access)
    });
    fetched.map_err(|error| FetchError::new(error, url))
}

/// Fetches a URL and writes it to `into`, unless the server's entity tag still equals `etag`.
///
/// # Errors
/// As for [`fetch`]. What was written until then must not be used.
pub fn fetch_into(
    access: &Access,
    url: &str,
    trust_anyone: bool,
    etag: Option<&str>,
    into: &mut dyn Write,
) -> Result<Fetched, FetchError> {
    let fetched = requested(access, url, trust_anyone, etag).and_then(|mut response| {
        if etag.is_some() && response.status() == 304 {
            return Ok(Fetched::Unchanged);
        }
        whole(&response)?;
        body::copy(&mut response, access, into)?;
        let etag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        Ok(Fetched::Whole { etag })
    });
    fetched.map_err(|error| FetchError::new(error, url))
}

/// Whether a web server has a file at a URL.
pub fn exists(access: &Access, url: &str) -> bool {
    let Ok(request) = Request::head(url).body(Vec::new()) else { return false };
    client(access, false).and_then(|client| client.send(request)).is_ok_and(|response| response.status().is_success())
}

fn client(access: &Access, trust_anyone: bool) -> Result<Client, WebError> {
    Client::new(Options {
        timeout: access.request_timeout,
        access: access.clone(),
        trust_anyone,
        silence: Some(SILENCE),
        ..Options::default()
    })
}

fn requested(access: &Access, url: &str, trust_anyone: bool, etag: Option<&str>) -> Result<Response, WebError> {
    let mut request = Request::get(url);
    if let Some(etag) = etag {
        request = request.header(IF_NONE_MATCH, etag);
    }
    let request = request.body(Vec::new()).map_err(|error| WebError::Request(error.into()))?;
    client(access, trust_anyone)?.send(request)
}

/// Checks that a response carries a whole file.
fn whole(response: &Response) -> Result<(), WebError> {
    match response.status().as_u16() {
        // 203 is the answer of a proxy that has changed the content, as it was told to.
        200 | 203 => Ok(()),
        status => Err(WebError::Status(status)),
    }
}
