//! Certificates of servers, signed by an authority of the test.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// Writes an authority, `ca.pem`, and a certificate of `localhost` with its key, `server.pem` and `server.key`.
pub fn write_certificates(directory: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    std::fs::write(directory.join("ca.pem"), issuer.pem()).unwrap();
    std::fs::write(directory.join("server.pem"), certificate.pem()).unwrap();
    std::fs::write(directory.join("server.key"), key.serialize_pem()).unwrap();
}
