//! Sends requests and follows redirects.
//!
//! Redirects are followed here and not by the library: what a caller sends to one server, such as a token in a header of
//! its own, does not follow to another one.

use std::time::Instant;

use brine_value::percent_encoded_path;
use rustls::CertificateError;
use ureq::http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName,
    IF_NONE_MATCH, LOCATION, TRANSFER_ENCODING, USER_AGENT,
};
use ureq::http::uri::{Authority, Scheme};
use ureq::http::{HeaderMap, Method, Request, StatusCode, Uri};
use ureq::{Agent, Body};

use super::{Options, WebError};

/// The maximum number of redirects of a request.
const MAX_REDIRECTS: usize = 10;
/// The headers that follow a redirect to another server.
const PUBLIC_HEADERS: [HeaderName; 5] = [ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, IF_NONE_MATCH, USER_AGENT];

/// A response, before its body was read.
pub type Response = ureq::http::Response<Body>;

/// A client of web servers.
pub struct Client {
    agent: Agent,
    options: Options,
}

/// A request, or the one that follows a redirect.
struct Step {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Client {
    /// Creates a client with these options. No connection is opened.
    ///
    /// # Errors
    /// The certificates or the proxy are invalid.
    pub fn new(options: Options) -> Result<Self, WebError> {
        let trusted = brine_tls::authorities(options.access.ca_bundle.as_deref())
            .map_err(|error| WebError::Bundle { path: error.path, reason: error.reason })?;
        let mut config = brine_tls::http_client(options.timeout)
            .timeout_connect(Some(options.access.connect_timeout))
            .timeout_per_read(options.silence)
            .tls_config(brine_tls::http_tls(&trusted, options.trust_anyone));
        if let Some(proxy) = &options.access.proxy {
            config = config.proxy(Some(proxy.open()?));
        }
        Ok(Client { agent: config.build().into(), options })
    }

    /// Sends a request without headers and body.
    ///
    /// # Errors
    /// As for [`Client::send`].
    pub fn get(&self, url: &str) -> Result<Response, WebError> {
        let request = Request::get(url).body(Vec::new());
        self.send(request.map_err(|error| WebError::Request(error.into()))?)
    }

    /// Sends a request and returns its response, with any status. Redirects are followed; the response is a redirect only
    /// if there were too many, or it names no address.
    ///
    /// # Errors
    /// No response is received, or a redirect is refused.
    pub fn send(&self, request: Request<Vec<u8>>) -> Result<Response, WebError> {
        let (parts, body) = request.into_parts();
        let mut step = Step { method: parts.method, uri: parts.uri, headers: parts.headers, body };
        let started = Instant::now();
        let mut followed = 0;
        loop {
            let response = self.once(&step, started)?;
            if !self.options.follow {
                return Ok(response);
            }
            let Some(target) = target(&response, &step.uri)? else { return Ok(response) };
            if followed == MAX_REDIRECTS {
                tracing::info!(redirects = followed, "a web server redirects too often");
                return Ok(response);
            }
            followed += 1;
            step = step.redirected(response.status(), target)?;
        }
    }

    fn once(&self, step: &Step, started: Instant) -> Result<Response, WebError> {
        let mut request = Request::builder().method(step.method.clone()).uri(step.uri.clone());
        if let Some(headers) = request.headers_mut() {
            headers.clone_from(&step.headers);
        }
        let left = self.options.timeout.saturating_sub(started.elapsed());
        if step.body.is_empty() && !sends_body(&step.method) {
            let request = request.body(()).map_err(|error| WebError::Request(error.into()))?;
            let request = self.agent.configure_request(request).allow_non_standard_methods(true);
            return Ok(self.agent.run(request.timeout_global(Some(left)).build())?);
        }
        let request = request.body(step.body.clone()).map_err(|error| WebError::Request(error.into()))?;
        let request = self.agent.configure_request(request).allow_non_standard_methods(true);
        Ok(self.agent.run(request.timeout_global(Some(left)).build())?)
    }
}

impl Step {
    /// Returns the request that follows a redirect.
    fn redirected(mut self, status: StatusCode, target: Uri) -> Result<Self, WebError> {
        // As browsers do, and curl.
        let becomes_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body.clear();
            for name in [CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING] {
                self.headers.remove(name);
            }
        }
        if !is_same_server(&self.uri, &target) {
            if !self.body.is_empty() {
                return Err(WebError::Body(target.to_string()));
            }
            let headers =
                PUBLIC_HEADERS.into_iter().filter_map(|name| Some((name.clone(), self.headers.get(&name)?.clone())));
            self.headers = headers.collect();
        }
        self.uri = target;
        Ok(self)
    }
}

fn sends_body(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}

/// Whether both are the same server, or the second is its encrypted port.
fn is_same_server(one: &Uri, other: &Uri) -> bool {
    let server = |uri: &Uri| {
        let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        (is_tls, host, uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }))
    };
    let (one, other) = (server(one), server(other));
    one == other || (one.1 == other.1 && (one.0, one.2, other.0, other.2) == (false, 80, true, 443))
}

/// Returns the address to which a response redirects.
fn target(response: &Response, base: &Uri) -> Result<Option<Uri>, WebError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let location = String::from_utf8_lossy(location.as_bytes()).trim().to_owned();
    let invalid = || WebError::Location(location.escape_debug().to_string());
    let target = resolved(base, &location).ok_or_else(invalid)?;
    match target.scheme_str() {
        Some("http" | "https") if target.host().is_some_and(|host| !host.is_empty()) => Ok(Some(target)),
        Some("http" | "https") | None => Err(invalid()),
        Some(_) => Err(WebError::Scheme(location)),
    }
}

/// Resolves the address of a redirect.
fn resolved(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or_default();
    // Servers send spaces and other characters as they are.
    let location: String = location
        .chars()
        .map(|c| if c == ' ' || !c.is_ascii() { percent_encoded_path(&c.to_string()) } else { c.to_string() })
        .collect();
    let scheme = location.split_once("://").map(|(scheme, _)| scheme);
    if scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))) {
        // `file:///path` has no host, which the parser refuses.
        return location.replacen(":///", "://localhost/", 1).parse().ok();
    }
    let mut parts = base.clone().into_parts();
    if let Some(rest) = location.strip_prefix("//") {
        let (authority, _) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        parts.authority = Some(authority.parse::<Authority>().ok()?);
        let path = &rest[authority.len()..];
        parts.path_and_query =
            Some(if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }.parse().ok()?);
        return Uri::from_parts(parts).ok();
    }
    let path = if location.starts_with('/') {
        location
    } else if location.starts_with('?') || location.is_empty() {
        format!("{}{location}", base.path())
    } else {
        let directory = base.path().rsplit_once('/').map_or("", |(directory, _)| directory);
        format!("{directory}/{location}")
    };
    parts.path_and_query = Some(without_dots(&path).parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Removes `.` and `..` from a path.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut names: Vec<&str> = Vec::new();
    let all: Vec<&str> = path.split('/').skip(1).collect();
    for (place, name) in all.iter().enumerate() {
        let is_last = place + 1 == all.len();
        match *name {
            "." => names.extend(is_last.then_some("")),
            ".." => {
                names.pop();
                names.extend(is_last.then_some(""));
            }
            name => names.push(name),
        }
    }
    format!("/{}{query}", names.join("/"))
}

/// Returns the message of an error; that of the operating system if there is one.
pub(super) fn message(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => match (error.raw_os_error(), error.get_ref()) {
            (Some(number), _) => format!("[Errno {number}] {}", nix::errno::Errno::from_raw(number).desc()),
            (None, Some(cause)) if let Some(error) = cause.downcast_ref() => tls_message(error),
            (None, _) => unresolved(&error.to_string()),
        },
        ureq::Error::Rustls(error) => tls_message(error),
        other => other.to_string(),
    }
}

/// Returns the message of an error of TLS. A certificate that is not accepted has the words of OpenSSL, which users of
/// Salt search for.
fn tls_message(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(reason) = error else { return error.to_string() };
    let reason = match reason {
        CertificateError::UnknownIssuer => "unable to get local issuer certificate".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "certificate has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate is not yet valid".to_owned()
        }
        CertificateError::Revoked => "certificate revoked".to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("Hostname mismatch: {reason}")
        }
        // An authority's certificate that a server shows as its own is one that it has signed itself.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "self-signed certificate".to_owned()
        }
        other => other.to_string(),
    };
    format!("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {reason}")
}

/// Returns the message of a failed name resolution with the resolver's error number, as in Python; other messages
/// unchanged.
pub(super) fn unresolved(text: &str) -> String {
    let numbers = [
        ("Name or service not known", -2),
        ("Temporary failure in name resolution", -3),
        ("No address associated with hostname", -5),
    ];
    let reason = text.strip_prefix("failed to lookup address information: ").unwrap_or(text);
    match numbers.iter().find(|(message, _)| *message == reason) {
        Some((_, number)) => format!("[Errno {number}] {reason}"),
        None => text.to_owned(),
    }
}

/// Returns the standard phrase of a status.
pub(super) fn reason(status: u16) -> &'static str {
    StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_redirects_are_resolved() {
        let base: Uri = "http://u:p@a.example:8080/x/y?q=1".parse().unwrap();
        for (location, expected) in [
            ("https://b.example/c#part", Some("https://b.example/c")),
            ("//b.example/c", Some("http://b.example/c")),
            ("//b.example", Some("http://b.example/")),
            ("/c/../d/./e?f=..", Some("http://u:p@a.example:8080/d/e?f=..")),
            ("c", Some("http://u:p@a.example:8080/x/c")),
            ("../../../c/..", Some("http://u:p@a.example:8080/")),
            ("?r", Some("http://u:p@a.example:8080/x/y?r")),
            ("/a b/ä", Some("http://u:p@a.example:8080/a%20b/%C3%A4")),
            ("ftp://b.example/c", Some("ftp://b.example/c")),
            ("file:///etc/passwd", Some("file://localhost/etc/passwd")),
            ("http://[::1", None),
            ("http://a b/", Some("http://a%20b/")),
        ] {
            let resolved = resolved(&base, location).map(|uri| uri.to_string());
            // A host with an encoded space may be refused.
            if location != "http://a b/" || resolved.is_some() {
                assert_eq!(resolved.as_deref(), expected, "{location}");
            }
        }
    }

    #[test]
    fn a_server_is_its_scheme_host_and_port() {
        for (one, other, same) in [
            ("http://a/x", "http://A:80/y", true),
            ("http://a/", "https://a/", true),
            ("https://a/", "http://a/", false),
            ("https://a/", "https://a:443/", true),
            ("http://a:8080/", "https://a/", false),
            ("http://a/", "http://a:81/", false),
            ("http://a/", "http://b/", false),
            ("http://a/", "http://a@b/", false),
        ] {
            assert_eq!(is_same_server(&one.parse().unwrap(), &other.parse().unwrap()), same, "{one} {other}");
        }
    }
}
