//! Trusted certificate authorities: those of a PEM file, or of this host, or Mozilla's on a host without any.

use std::path::Path;
use std::sync::Arc;

#[cfg(any(feature = "amqp", feature = "postgres"))]
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Returns the cryptography of TLS.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Reads the trusted certificates of a PEM file, or else of this host.
///
/// # Errors
/// The file cannot be read, or has no certificates.
pub(crate) fn certificates(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(path) = file else { return Ok(rustls_native_certs::load_native_certs().certs) };
    let invalid = |reason: String| format!("reading {} failed: {reason}", path.display());
    let read = CertificateDer::pem_file_iter(path).map_err(|error| invalid(error.to_string()))?;
    let found: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| invalid(error.to_string()))?;
    if found.is_empty() { Err(invalid("it has no certificates".to_owned())) } else { Ok(found) }
}

/// Returns the [`certificates`] as roots of trust.
#[cfg(any(feature = "amqp", feature = "postgres"))]
pub(crate) fn roots(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(file)?);
    Ok(roots)
}
