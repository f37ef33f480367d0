//! The HTTP client: trusted certificates, the proxy, and error messages.
//!
//! `https://` trusts the certificate authorities of this host, or those in the file `ca_bundle`. A host without any
//! uses Mozilla's list (webpki).

use std::path::PathBuf;
use std::time::Duration;

use brine_config::MinionConfig;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, ProxyProtocol};

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
    /// The maximum size of a response, in bytes: it is held in memory.
    pub max_body: u64,
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
        }
    }
}

/// Returns a timeout of this many seconds. 0 and invalid durations mean no limit.
pub fn timeout(seconds: f64) -> Duration {
    let given = Duration::try_from_secs_f64(seconds).unwrap_or(NO_LIMIT);
    if given.is_zero() { NO_LIMIT } else { given.min(NO_LIMIT) }
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
    /// Whether an error status is an error.
    pub status_is_error: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            timeout: Duration::from_secs(60),
            access: Access::default(),
            trust_anyone: false,
            follow: true,
            status_is_error: true,
        }
    }
}

/// The error of an option of the HTTP client.
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
}

/// Creates a client with these settings.
pub fn agent(options: &Options) -> Result<Agent, WebError> {
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(brine_tls::provider())
        .root_certs(roots(options)?)
        .disable_verification(options.trust_anyone)
        .build();
    let mut config = Agent::config_builder()
        .timeout_global(Some(options.timeout))
        .timeout_connect(Some(options.access.connect_timeout))
        .max_redirects(if options.follow { 10 } else { 0 })
        .max_redirects_will_error(false)
        .http_status_as_error(options.status_is_error)
        .tls_config(tls);
    if let Some(proxy) = &options.access.proxy {
        config = config.proxy(Some(proxy.open()?));
    }
    Ok(config.build().into())
}

/// Creates a client with the settings of the configuration.
pub fn agent_of(access: &Access) -> Result<Agent, String> {
    agent_with(access, false)
}

fn agent_with(access: &Access, trust_anyone: bool) -> Result<Agent, String> {
    let timeout = access.request_timeout;
    let options = Options { timeout, access: access.clone(), trust_anyone, ..Options::default() };
    agent(&options).map_err(|error| error.to_string())
}

/// Fetches a URL.
pub fn fetch(access: &Access, url: &str) -> Result<Vec<u8>, String> {
    fetch_from(access, url, false)
}

/// Fetches like [`fetch`]; with `trust_anyone`, without verifying the certificate.
pub fn fetch_from(access: &Access, url: &str, trust_anyone: bool) -> Result<Vec<u8>, String> {
    let fetched = fetch_unless(access, url, trust_anyone, None)?;
    Ok(fetched.map(|fetched| fetched.body).unwrap_or_default())
}

/// A response.
#[derive(Debug)]
pub struct Fetched {
    /// The body.
    pub body: Vec<u8>,
    /// The entity tag, if there is one.
    pub etag: Option<String>,
}

/// Fetches like [`fetch_from`]; returns `None` if the server's entity tag still equals `etag`.
pub fn fetch_unless(
    access: &Access,
    url: &str,
    trust_anyone: bool,
    etag: Option<&str>,
) -> Result<Option<Fetched>, String> {
    let path = || {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        rest.find('/').map_or("/", |at| &rest[at..]).to_owned()
    };
    let agent = agent_with(access, trust_anyone)?;
    let report = |error: ureq::Error| match error {
        ureq::Error::StatusCode(status) => format!("Error: HTTP {status} reading {}", path()),
        error => format!("Error: {} reading {}", error_message(&error), path()),
    };
    let mut request = agent.get(url);
    if let Some(etag) = etag {
        request = request.header("If-None-Match", etag);
    }
    let mut response = request.call().map_err(report)?;
    if etag.is_some() && response.status() == 304 {
        return Ok(None);
    }
    let etag = response.headers().get("etag").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
    let body = read_body(&mut response, access).map_err(|error| format!("Error: {error} reading {}", path()))?;
    Ok(Some(Fetched { body, etag }))
}

/// Reads the body of a response, up to `http_max_body`.
///
/// # Errors
/// The message of the error.
pub fn read_body(response: &mut ureq::http::Response<ureq::Body>, access: &Access) -> Result<Vec<u8>, String> {
    let limit = access.max_body;
    // ureq refuses a body that has the size of its limit.
    let body = response.body_mut().with_config().limit(limit.saturating_add(1)).read_to_vec();
    body.map_err(|error| match error {
        ureq::Error::BodyExceedsLimit(_) => {
            format!("the response is larger than {limit} bytes; the option `http_max_body` permits more")
        }
        error => error_message(&error),
    })
}

/// Returns the message of an error; that of the operating system if there is one.
pub fn error_message(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => match error.raw_os_error() {
            Some(number) => format!("[Errno {number}] {}", nix::errno::Errno::from_raw(number).desc()),
            None => unresolved(&error.to_string()),
        },
        other => other.to_string(),
    }
}

/// Returns the message of a failed name resolution with the resolver's error number, as in Python; other messages
/// unchanged.
fn unresolved(text: &str) -> String {
    let numbers = [
        ("Name or service not known", -2),
        ("Temporary failure in name resolution", -3),
        ("No address associated with hostname", -5),
    ];
    let reason = text.strip_prefix("failed to lookup address information: ").unwrap_or(text);
    match numbers.iter().find(|(known, _)| *known == reason) {
        Some((_, number)) => format!("[Errno {number}] {reason}"),
        None => text.to_owned(),
    }
}

/// Removes user names and passwords from the URLs in a text.
pub fn redacted(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown += before;
        let end = after.find(|c: char| c == '/' || c.is_whitespace() || "'\"".contains(c)).unwrap_or(after.len());
        let is_web = before.ends_with("http://") || before.ends_with("https://");
        rest = match after[..end].rfind('@').filter(|_| is_web) {
            Some(login) => {
                shown += "<redacted>";
                &after[login..]
            }
            None => after,
        };
    }
    shown + rest
}

fn roots(options: &Options) -> Result<RootCerts, WebError> {
    let found = brine_tls::authorities(options.access.ca_bundle.as_deref())
        .map_err(|error| WebError::Bundle { path: error.path, reason: error.reason })?;
    Ok(brine_tls::root_certs(&found))
}

#[cfg(test)]
mod tests;
