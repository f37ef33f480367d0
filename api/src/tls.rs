//! The certificate of the API: the configured one, or a self-signed one, generated at the first start.

use std::iter::once;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_config::{MasterConfig, RestConfig};
use brine_http_server::load_certificate;
use brine_system::files;
use rustls::ServerConfig;

use crate::error::StartError;

/// The file names of the generated certificate, in `pki_dir`.
const GENERATED_CERTIFICATE: &str = "api.crt";
const GENERATED_KEY: &str = "api.key";

/// Returns the TLS configuration; `None` if TLS is disabled.
pub(crate) fn load(config: &MasterConfig, options: &RestConfig) -> Result<Option<Arc<ServerConfig>>, StartError> {
    if options.disable_ssl {
        return Ok(None);
    }
    let (certificate, key) = match (&options.ssl_crt, &options.ssl_key) {
        (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
        (None, None) => generated(config)?,
        _ => return Err(StartError::IncompleteCertificate),
    };
    let certificates: Vec<&Path> = once(&*certificate).chain(options.ssl_chain.as_deref()).collect();
    Ok(Some(load_certificate(&certificates, &key)?))
}

/// Returns the paths of the self-signed certificate and its key; generates them if they are missing.
fn generated(config: &MasterConfig) -> Result<(PathBuf, PathBuf), StartError> {
    let (certificate, key) = (config.pki_dir.join(GENERATED_CERTIFICATE), config.pki_dir.join(GENERATED_KEY));
    if !(certificate.exists() && key.exists()) {
        let failed = |error: &dyn std::fmt::Display| StartError::MakeCertificate(error.to_string());
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        names.extend(host_name());
        let made = rcgen::generate_simple_self_signed(names).map_err(|error| failed(&error))?;
        files::create_private_dir(&config.pki_dir).map_err(|error| failed(&error))?;
        // The key is written first: a certificate without its key would be useless.
        files::write_atomic(&key, made.signing_key.serialize_pem().as_bytes(), 0o600)
            .map_err(|error| failed(&error))?;
        files::write_atomic(&certificate, made.cert.pem().as_bytes(), 0o644).map_err(|error| failed(&error))?;
        tracing::warn!(
            certificate = %certificate.display(),
            "a self-signed certificate has been generated: set ssl_crt and ssl_key to use another one"
        );
    }
    Ok((certificate, key))
}

/// Returns the name of this host.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned();
    (!name.is_empty() && name != "localhost").then_some(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_certificate_is_generated_once_and_its_key_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let config = MasterConfig { pki_dir: directory.path().join("pki"), ..MasterConfig::default() };
        assert!(load(&config, &RestConfig::default()).unwrap().is_some());
        let key = config.pki_dir.join(GENERATED_KEY);
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        let first = std::fs::read(&key).unwrap();
        load(&config, &RestConfig::default()).unwrap();
        assert_eq!(std::fs::read(&key).unwrap(), first);
        // The generated files can also be set as the configured certificate.
        let named = RestConfig {
            ssl_crt: Some(config.pki_dir.join(GENERATED_CERTIFICATE)),
            ssl_key: Some(key),
            ..RestConfig::default()
        };
        assert!(load(&config, &named).unwrap().is_some());
    }

    #[test]
    fn incomplete_and_disabled_configurations_are_distinguished() {
        let config = MasterConfig::default();
        let half = RestConfig { ssl_crt: Some("/nonexistent".into()), ..RestConfig::default() };
        assert!(load(&config, &half).is_err());
        let missing = RestConfig { ssl_key: Some("/nonexistent".into()), ..half };
        assert!(load(&config, &missing).unwrap_err().to_string().contains("/nonexistent"));
        let disabled = RestConfig { disable_ssl: true, ..missing };
        assert!(load(&config, &disabled).unwrap().is_none());
    }
}
