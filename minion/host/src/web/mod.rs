//! The HTTP client: trusted certificates, and error messages.
//!
//! `https://` trusts the certificate authorities of this host, or those in the file `ca_bundle`. A host without any
//! uses Mozilla's list (webpki).

use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

/// The maximum size of a response, in bytes: it is held in memory.
pub const MAX_BODY: u64 = 1 << 30;

/// The settings of the HTTP client.
#[derive(Debug, Clone)]
pub struct Options {
    /// The timeout of the whole request.
    pub timeout: Duration,
    /// The file with the trusted certificate authorities, instead of the host's own.
    pub ca_bundle: Option<PathBuf>,
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
            ca_bundle: None,
            trust_anyone: false,
            follow: true,
            status_is_error: true,
        }
    }
}

/// The error of reading certificate authorities.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The file `ca_bundle` is invalid.
    #[error("the certificates in {path} (ca_bundle) cannot be read: {reason}")]
    Bundle {
        /// The file.
        path: PathBuf,
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
    let config = Agent::config_builder()
        .timeout_global(Some(options.timeout))
        .max_redirects(if options.follow { 10 } else { 0 })
        .max_redirects_will_error(false)
        .http_status_as_error(options.status_is_error)
        .tls_config(tls);
    Ok(config.build().into())
}

/// Creates a client with the settings of the configuration.
pub fn agent_of(ca_bundle: Option<&Path>) -> Result<Agent, String> {
    agent_with(ca_bundle, false)
}

fn agent_with(ca_bundle: Option<&Path>, trust_anyone: bool) -> Result<Agent, String> {
    let options = Options { ca_bundle: ca_bundle.map(Path::to_owned), trust_anyone, ..Options::default() };
    agent(&options).map_err(|error| error.to_string())
}

/// Fetches a URL.
pub fn fetch(ca_bundle: Option<&Path>, url: &str) -> Result<Vec<u8>, String> {
    fetch_from(ca_bundle, url, false)
}

/// Fetches like [`fetch`]; with `trust_anyone`, without verifying the certificate.
pub fn fetch_from(ca_bundle: Option<&Path>, url: &str, trust_anyone: bool) -> Result<Vec<u8>, String> {
    let fetched = fetch_unless(ca_bundle, url, trust_anyone, None)?;
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

/// Fetches like [`fetch_from`]; returns `None` if the server's entity tag is still this one.
pub fn fetch_unless(
    ca_bundle: Option<&Path>,
    url: &str,
    trust_anyone: bool,
    etag: Option<&str>,
) -> Result<Option<Fetched>, String> {
    let path = || {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        rest.find('/').map_or("/", |at| &rest[at..]).to_owned()
    };
    let agent = agent_with(ca_bundle, trust_anyone)?;
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
    let body = response.body_mut().with_config().limit(MAX_BODY).read_to_vec().map_err(report)?;
    Ok(Some(Fetched { body, etag }))
}

/// Returns the message of an error; that of the system if there is one.
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
    let found = brine_tls::authorities(options.ca_bundle.as_deref())
        .map_err(|error| WebError::Bundle { path: error.path, reason: error.reason })?;
    Ok(brine_tls::root_certs(&found))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::sync::Arc;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};

    use super::*;

    const SERVER: &[u8] = include_bytes!("server.pem");
    const AUTHORITY: &[u8] = include_bytes!("authority.pem");

    /// Starts a server whose certificate is from an authority of its own.
    fn sealed_server() -> SocketAddr {
        let certificates = CertificateDer::pem_slice_iter(SERVER).collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_slice(SERVER).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(brine_tls::provider())
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = Arc::new(config.with_no_client_auth().with_single_cert(certificates, key).unwrap());
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = rustls::StreamOwned::new(session, stream.unwrap());
                // A client that does not trust the server disconnects.
                if stream.read(&mut [0; 1024]).is_ok() {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").unwrap();
                }
            }
        });
        address
    }

    #[test]
    fn resolver_errors_have_numbers() {
        let lookup = "failed to lookup address information: ";
        for (text, reported) in [
            (
                format!("{lookup}Temporary failure in name resolution"),
                "[Errno -3] Temporary failure in name resolution",
            ),
            (format!("{lookup}Name or service not known"), "[Errno -2] Name or service not known"),
            (format!("{lookup}Try again"), "failed to lookup address information: Try again"),
            ("no more".into(), "no more"),
        ] {
            assert_eq!(unresolved(&text), reported);
        }
    }

    #[test]
    fn servers_are_trusted_by_their_authority() {
        let directory = tempfile::tempdir().unwrap();
        let bundle = directory.path().join("ca.pem");
        std::fs::write(&bundle, AUTHORITY).unwrap();
        let url = format!("https://localhost:{}/", sealed_server().port());
        let with = |ca_bundle: Option<&PathBuf>, trust_anyone| {
            let options = Options { ca_bundle: ca_bundle.cloned(), trust_anyone, ..Options::default() };
            let mut answer = agent(&options).unwrap().get(&url).call()?;
            answer.body_mut().read_to_string()
        };
        assert_eq!(with(Some(&bundle), false).unwrap(), "ok");
        assert_eq!(with(None, true).unwrap(), "ok");
        let report = with(None, false).unwrap_err().to_string();
        assert!(report.contains("UnknownIssuer"), "{report}");
    }

    #[test]
    fn a_bundle_without_certificates_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let empty = directory.path().join("empty.pem");
        std::fs::write(&empty, "no certificate\n").unwrap();
        for path in [empty, directory.path().join("nope.pem")] {
            let report =
                agent(&Options { ca_bundle: Some(path.clone()), ..Options::default() }).unwrap_err().to_string();
            assert!(report.starts_with(&format!("the certificates in {} (ca_bundle)", path.display())), "{report}");
        }
    }
    #[test]
    fn the_hosts_authorities_are_trusted() {
        let there = brine_tls::authorities(None).unwrap().len();
        match roots(&Options::default()).unwrap() {
            RootCerts::Specific(found) => assert_eq!(found.len(), there),
            _ => assert_eq!(there, 0),
        }
    }
}
