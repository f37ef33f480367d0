//! Fetches files from web servers. Only a whole file is a file: neither a redirect nor a part, nor an answer without content.

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

/// Fetches a URL into memory.
///
/// # Errors
/// The message of the error, with the path of the URL.
pub fn fetch(access: &Access, url: &str) -> Result<Vec<u8>, String> {
    fetch_from(access, url, false)
}

/// Fetches like [`fetch`]; with `trust_anyone`, without verifying the certificate.
///
/// # Errors
/// As for [`fetch`].
pub fn fetch_from(access: &Access, url: &str, trust_anyone: bool) -> Result<Vec<u8>, String> {
    let fetched = requested(access, url, trust_anyone, None).and_then(|mut response| {
        whole(&response)?;
        body::read(&mut response, access)
    });
    fetched.map_err(|error| failed(&error, url))
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
) -> Result<Fetched, String> {
    let fetched = requested(access, url, trust_anyone, etag).and_then(|mut response| {
        if etag.is_some() && response.status() == 304 {
            return Ok(Fetched::Unchanged);
        }
        whole(&response)?;
        body::copy(&mut response, access, into)?;
        let etag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        Ok(Fetched::Whole { etag })
    });
    fetched.map_err(|error| failed(&error, url))
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

fn failed(error: &WebError, url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').map_or("/", |at| &rest[at..]);
    match error {
        WebError::Bundle { .. } | WebError::Proxy { .. } => error.to_string(),
        error => format!("Error: {error} reading {path}"),
    }
}
