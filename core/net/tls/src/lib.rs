//! TLS: the cryptography provider, trusted certificate authorities, the verification of servers, and their certificates;
//! and the settings that all HTTP clients share.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod client;
mod verifier;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};

pub use client::{http_client, http_tls, root_certs};
pub use verifier::{Verified, Verifier};

/// The error of reading trusted certificates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("reading {} failed: {reason}", path.display())]
pub struct AuthoritiesError {
    /// The path of the PEM file.
    pub path: PathBuf,
    /// The cause.
    pub reason: String,
}

/// The error of a server's certificate or key.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The certificate or its chain is no PEM.
    #[error("the certificate is invalid: {0}")]
    Certificate(#[source] pem::Error),
    /// The key is no PEM.
    #[error("the key is invalid: {0}")]
    Key(#[source] pem::Error),
    /// The parts do not fit each other, or the library refuses one of them.
    #[error(transparent)]
    Refused(#[from] rustls::Error),
}

/// Returns the cryptography provider of all TLS connections, AWS-LC.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Returns the configuration of a server with a certificate, its chain and its key, each in PEM.
///
/// # Errors
/// A part is invalid, or the key is not that of the certificate.
pub fn server(certificates: &[String], key: &str) -> Result<Arc<ServerConfig>, ServerError> {
    let certificates: Vec<CertificateDer<'static>> = certificates
        .iter()
        .flat_map(|pem| CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Vec<_>>())
        .collect::<Result<_, _>>()
        .map_err(ServerError::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(ServerError::Key)?;
    let tls = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))?;
    Ok(Arc::new(tls))
}

/// Reads trusted certificates from a PEM file, or by default from the trust store of this host, which may be empty.
///
/// # Errors
/// The file cannot be read, or has no certificates.
pub fn authorities(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, AuthoritiesError> {
    let Some(path) = file else { return Ok(of_host()) };
    let failed = |reason: String| AuthoritiesError { path: path.to_owned(), reason };
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if certificates.is_empty() => Err(failed("it has no certificates".to_owned())),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn of_host() -> Vec<CertificateDer<'static>> {
    let loaded = rustls_native_certs::load_native_certs();
    for error in &loaded.errors {
        tracing::debug!(%error, "certificate authorities of this host cannot be read");
    }
    loaded.certs
}

/// Returns the [`authorities`] as a root store. Omits certificates that cannot be trust anchors.
///
/// # Errors
/// As for [`authorities`].
pub fn roots(file: Option<&Path>) -> Result<RootCertStore, AuthoritiesError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities(file)?);
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_authorities_are_trusted() {
        assert_eq!(authorities(None).unwrap(), rustls_native_certs::load_native_certs().certs);
    }

    #[test]
    fn authorities_are_read_from_a_file_and_invalid_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let certificate = rcgen::generate_simple_self_signed(["one".to_owned()]).unwrap().cert;
        let bundle = write("bundle.pem", &certificate.pem().repeat(2));
        assert_eq!(authorities(Some(&bundle)).unwrap(), vec![certificate.der().clone(); 2]);
        for (path, reason) in [
            (write("none.pem", "no certificate\n"), "it has no certificates"),
            (write("cut.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n"), "section end"),
            (directory.path().join("missing.pem"), "No such file"),
        ] {
            let error = authorities(Some(&path)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("reading {} failed: ", path.display())), "{error}");
            assert!(error.contains(reason), "{error}");
        }
    }
}
