//! The common settings of HTTP clients.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::typestate::AgentScope;

/// Begins the settings of an HTTP client. `timeout` covers a request with its reply.
///
/// The client returns redirects and error statuses as replies: a redirect that is followed without a look at its target
/// would pass headers and bodies on to another host, and one that is not followed would count as a success.
// The one place where clients are configured.
#[allow(clippy::disallowed_methods)]
#[must_use]
pub fn http_client(timeout: Duration) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .timeout_global(Some(timeout))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
}

/// Returns the TLS settings of an HTTP client that trusts these certificate authorities.
#[must_use]
pub fn http_tls(trusted: &[CertificateDer<'_>], skip_verification: bool) -> TlsConfig {
    TlsConfig::builder()
        .unversioned_rustls_crypto_provider(super::provider())
        .root_certs(root_certs(trusted))
        .disable_verification(skip_verification)
        .build()
}

/// Converts trusted certificates for the HTTP client; without any, it trusts Mozilla's certificate authorities.
#[must_use]
pub fn root_certs(trusted: &[CertificateDer<'_>]) -> RootCerts {
    if trusted.is_empty() {
        return RootCerts::WebPki;
    }
    let owned = trusted.iter().map(|certificate| Certificate::from_der(certificate).to_owned());
    RootCerts::Specific(Arc::new(owned.collect()))
}
