//! TLS to authentication servers: the trusted certificate authorities and the client configuration.

use std::path::Path;
use std::sync::Arc;

use brine_tls::{Verified, Verifier};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

/// Reads the trusted certificates: those of a PEM file, or of this host.
pub(super) fn authorities(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = brine_tls::authorities(file).map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("this host has no certificate authorities: install ca-certificates, or name a file".to_owned());
    }
    Ok(certificates)
}

/// Returns the client configuration. Without `verify` any certificate is accepted, for `auth.ldap.no_verify`.
pub(super) fn client(file: Option<&Path>, verify: bool) -> Result<Arc<ClientConfig>, String> {
    let builder = ClientConfig::builder_with_provider(brine_tls::provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let config = if verify {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities(file)?);
        builder.with_root_certificates(roots).with_no_client_auth()
    } else {
        let anybody = Verifier::new(Verified::Nothing, None);
        builder.dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth()
    };
    Ok(Arc::new(config))
}
