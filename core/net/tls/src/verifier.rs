//! The verification of servers' certificates.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};

use crate::provider;

/// The extent of the verification of a server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// No verification: the connection is encrypted, but open to a man in the middle.
    Nothing,
    /// A trusted certificate authority must have signed the certificate.
    Authority,
    /// In addition, the certificate must be valid for the host name.
    Host,
}

/// A verifier with a configurable extent. In any case, the certificate's key must have signed the handshake.
#[derive(Debug)]
pub struct Verifier {
    verified: Verified,
    verifier: Option<Arc<WebPkiServerVerifier>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// Creates a verifier; `verifier` has the trusted authorities. Without it, every certificate is refused, except
    /// with [`Verified::Nothing`].
    #[must_use]
    pub fn new(verified: Verified, verifier: Option<Arc<WebPkiServerVerifier>>) -> Arc<Self> {
        Arc::new(Verifier { verified, verifier, algorithms: provider().signature_verification_algorithms })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verifier = match (&self.verifier, self.verified) {
            (_, Verified::Nothing) => return Ok(ServerCertVerified::assertion()),
            (Some(verifier), _) => verifier,
            (None, _) => return Err(rustls::Error::General("there is no trusted authority".to_owned())),
        };
        match verifier.verify_server_cert(certificate, chain, host, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.verified == Verified::Authority => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;

    use super::*;

    #[test]
    fn each_level_verifies_its_part_of_a_certificate() {
        let certificate = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert;
        let (trusted, other) = (certificate("one"), certificate("one"));
        let mut roots = RootCertStore::empty();
        roots.add(trusted.der().clone()).unwrap();
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build().unwrap();
        let accepts = |verified, has_verifier: bool, certificate: &rcgen::Certificate, host: &'static str| {
            let verifier = Verifier::new(verified, has_verifier.then(|| Arc::clone(&verifier)));
            let host = ServerName::try_from(host).unwrap();
            verifier.verify_server_cert(certificate.der(), &[], &host, &[], UnixTime::now()).is_ok()
        };
        for (verified, has_verifier, certificate, host, expected) in [
            (Verified::Host, true, &trusted, "one", true),
            (Verified::Host, true, &trusted, "two", false),
            (Verified::Host, true, &other, "one", false),
            (Verified::Authority, true, &trusted, "two", true),
            (Verified::Authority, true, &other, "two", false),
            (Verified::Authority, false, &trusted, "one", false),
            (Verified::Nothing, false, &other, "two", true),
        ] {
            assert_eq!(
                accepts(verified, has_verifier, certificate, host),
                expected,
                "{verified:?} {has_verifier} {host}"
            );
        }
    }
}
