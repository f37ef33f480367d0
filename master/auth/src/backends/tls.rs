//! TLS to authentication servers: the trusted certificate authorities and the client configuration.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Reads the trusted certificates: those of a PEM file, or of this host.
pub(super) fn authorities(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(path) = file else {
        let loaded = rustls_native_certs::load_native_certs();
        if loaded.certs.is_empty() {
            return Err("this host has no certificate authorities: install ca-certificates, or name a file".to_owned());
        }
        return Ok(loaded.certs);
    };
    let invalid = |reason: String| format!("reading {} failed: {reason}", path.display());
    let read = CertificateDer::pem_file_iter(path).map_err(|error| invalid(error.to_string()))?;
    let found: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| invalid(error.to_string()))?;
    if found.is_empty() { Err(invalid("it has no certificates".to_owned())) } else { Ok(found) }
}

/// Returns the client configuration. Without `verify` any certificate is accepted.
pub(super) fn client(file: Option<&Path>, verify: bool) -> Result<Arc<ClientConfig>, String> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let config = if verify {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities(file)?);
        builder.with_root_certificates(roots).with_no_client_auth()
    } else {
        let anybody = Arc::new(Anybody(provider()));
        builder.dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth()
    };
    Ok(Arc::new(config))
}

/// Accepts any certificate whose key signs the handshake, for `auth.ldap.no_verify`.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
