//! The files of a server's certificate and its key.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_tls::ServerError;
use rustls::ServerConfig;

/// The error of the files of a server's certificate and its key.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("reading {} failed: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The content cannot be used.
    #[error(transparent)]
    Invalid(#[from] ServerError),
}

/// Reads the certificates of a server, its chain among them, and their key, each in PEM. Blocks on the files.
///
/// # Errors
/// A file cannot be read or is invalid, or the key is not that of the certificate.
pub fn load_certificate(certificates: &[&Path], key: &Path) -> Result<Arc<ServerConfig>, CertificateError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
    };
    let certificates: Vec<String> = certificates.iter().copied().map(read).collect::<Result<_, _>>()?;
    Ok(brine_tls::server(&certificates, &read(key)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["one".to_owned()]).unwrap();
        let write = |name: &str, text: String| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (certificate, key) = (write("crt", made.cert.pem()), write("key", made.signing_key.serialize_pem()));
        assert!(load_certificate(&[&certificate, &certificate], &key).is_ok());
        let missing = directory.path().join("missing");
        for (certificates, key) in [(&[&*certificate, &missing][..], &*key), (&[&certificate], &missing)] {
            let error = load_certificate(certificates, key).unwrap_err().to_string();
            assert!(error.starts_with(&format!("reading {} failed: No such file", missing.display())), "{error}");
        }
        let other = rcgen::generate_simple_self_signed(["one".to_owned()]).unwrap().signing_key.serialize_pem();
        assert!(load_certificate(&[&certificate], &write("other", other)).is_err());
    }
}
