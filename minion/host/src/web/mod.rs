//! The HTTP client of minions: its options, trusted certificates and the proxy.
//!
//! `client.rs` sends requests and follows redirects, `body.rs` reads responses within limits, `fetch.rs` fetches files.
//!
//! `https://` trusts the certificate authorities of this host, or those in the file `ca_bundle`. A host without any
//! uses Mozilla's list (webpki).

mod body;
mod client;
mod fetch;

use std::path::PathBuf;
use std::time::Duration;

use brine_config::MinionConfig;
use ureq::ProxyProtocol;
pub use ureq::http::Request;

pub use body::{copy, read};
pub use client::{Client, Response};
pub use fetch::{FetchError, Fetched, exists, fetch, fetch_from, fetch_into};

/// The timeout of connections and requests without a limit.
const NO_LIMIT: Duration = Duration::from_secs(1_000_000);

/// The settings for access to web servers.
#[derive(Clone)]
pub struct Access {
    /// The file with the trusted certificate authorities, instead of those of the host.
    pub ca_bundle: Option<PathBuf>,
    /// The proxy, instead of that of the environment (`http_proxy` and its like).
    pub proxy: Option<Proxy>,
    /// The timeout of a connection.
    pub connect_timeout: Duration,
    /// The timeout of a whole request, unless the request has its own.
    pub request_timeout: Duration,
    /// The maximum size of a response, in bytes.
    pub max_body: u64,
    /// The minimum rate of a response, in bytes a second; 0 for none.
    pub min_rate: u64,
}

impl Default for Access {
    fn default() -> Self {
        Access::of(&MinionConfig::default())
    }
}

impl Access {
    /// Reads the options `ca_bundle`, `proxy_host` and its like, `no_proxy`, and `http_connect_timeout`,
    /// `http_request_timeout` and `http_max_body`.
    pub fn of(config: &MinionConfig) -> Self {
        let login = (config.proxy_username.clone(), config.proxy_password.clone());
        let proxy = Proxy {
            host: config.proxy_host.clone(),
            port: config.proxy_port,
            login: Some(login).filter(|(user, password)| !user.is_empty() && !password.is_empty()),
            no_proxy: config.no_proxy.clone(),
        };
        // As in Salt, a proxy needs both.
        let is_set = !proxy.host.is_empty() && proxy.port != 0;
        Access {
            ca_bundle: config.ca_bundle.clone(),
            proxy: is_set.then_some(proxy),
            connect_timeout: timeout(config.http_connect_timeout),
            request_timeout: timeout(config.http_request_timeout),
            max_body: config.http_max_body,
            min_rate: config.http_min_rate,
        }
    }
}

/// Returns a timeout of this many seconds. 0 and invalid durations mean no limit.
pub fn timeout(seconds: f64) -> Duration {
    let timeout = Duration::try_from_secs_f64(seconds).unwrap_or(NO_LIMIT);
    if timeout.is_zero() { NO_LIMIT } else { timeout.min(NO_LIMIT) }
}

/// An HTTP proxy. Connections to servers are tunnelled with `CONNECT`, also for `http://`.
#[derive(Clone)]
pub struct Proxy {
    host: String,
    port: u16,
    /// User name and password.
    login: Option<(String, String)>,
    /// The hosts that are connected to directly.
    no_proxy: Vec<String>,
}

impl Proxy {
    fn open(&self) -> Result<ureq::Proxy, WebError> {
        let mut proxy = ureq::Proxy::builder(ProxyProtocol::Http).host(&self.host).port(self.port);
        if let Some((user, password)) = &self.login {
            proxy = proxy.username(user).password(password);
        }
        let proxy = self.no_proxy.iter().fold(proxy, |proxy, host| proxy.no_proxy(host));
        proxy.build().map_err(|error| WebError::Proxy { host: self.host.clone(), reason: error.to_string() })
    }
}

/// The settings of the HTTP client.
#[derive(Clone)]
pub struct Options {
    /// The timeout of the whole request.
    pub timeout: Duration,
    /// The proxy and the trusted certificate authorities.
    pub access: Access,
    /// Whether certificates are not verified.
    pub trust_anyone: bool,
    /// Whether redirects are followed.
    pub follow: bool,
    /// The time without a single byte after which a request fails.
    pub silence: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            timeout: Duration::from_secs(60),
            access: Access::default(),
            trust_anyone: false,
            follow: true,
            silence: None,
        }
    }
}

/// The error of the HTTP client.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The file `ca_bundle` is invalid.
    #[error("reading the certificates in {path} (ca_bundle) failed: {reason}")]
    Bundle {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// The proxy is invalid.
    #[error("the proxy '{host}' (proxy_host) is invalid: {reason}")]
    Proxy {
        /// Its host.
        host: String,
        /// The error.
        reason: String,
    },
    /// No response was received, or not all of it.
    #[error("{}", client::message(.0))]
    Request(#[from] ureq::Error),
    /// The response redirects to something that is no web server.
    #[error("Unsupported url scheme: {}", redacted(.0))]
    Scheme(String),
    /// The address of a redirect is invalid.
    #[error("the redirect to '{0}' is invalid: expected a URL")]
    Location(String),
    /// A redirect asks to send the body of the request to another server.
    #[error("the redirect to {} is refused: the body of a request is not sent to another server", redacted(.0))]
    Body(String),
    /// The status of the response is not the expected one.
    #[error("HTTP {}: {}", .0, client::reason(*.0))]
    Status(u16),
    /// The body is too large.
    #[error("the response is larger than {0} bytes; the option `http_max_body` permits more")]
    TooLarge(u64),
    /// The body is too slow.
    #[error("the response is slower than {0} bytes a second; the option `http_min_rate` permits less")]
    TooSlow(u64),
    /// The body cannot be written.
    #[error("writing the response failed: {0}")]
    Write(std::io::Error),
}

/// Removes user names and passwords from the URLs in a text; a user without a password stays, except for web servers.
pub fn redacted(text: &str) -> String {
    let mut safe_text = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        safe_text += before;
        let end = after.find(|c: char| c == '/' || c.is_whitespace() || "'\"".contains(c)).unwrap_or(after.len());
        let is_web = before.ends_with("http://") || before.ends_with("https://");
        rest = match after[..end].rfind('@').filter(|login| is_web || after[..*login].contains(':')) {
            Some(login) => {
                safe_text += "<redacted>";
                &after[login..]
            }
            None => after,
        };
    }
    safe_text + rest
}

#[cfg(test)]
mod tests;
