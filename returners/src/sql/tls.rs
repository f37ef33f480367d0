//! TLS to PostgreSQL servers, with the modes of libpq (`sslmode`).

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::postgres::config::SslMode;
use ::postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use brine_tls::{Verified, Verifier};
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::{Connect, TlsConnector};

use crate::{Options, ReturnerError};

/// The TLS settings of a connection.
pub(super) struct Tls {
    pub mode: SslMode,
    pub connector: Connector,
}

/// Parses the options `sslmode`, `sslrootcert`, `sslcert`, `sslkey` and `sslcrl`. As with libpq, the default is
/// `prefer`: encrypted if the server supports it, without verification.
pub(super) fn settings(prefix: &str, options: &Options) -> Result<Tls, ReturnerError> {
    let text = |name: &str| options.get::<String>(prefix, name).map(|value| value.filter(|text| text != "None"));
    let invalid = |name: &str, reason: String| ReturnerError::Option { option: format!("{prefix}.{name}"), reason };
    let root = text("sslrootcert")?;
    let (mode, verified) = match text("sslmode")?.as_deref() {
        Some("disable") => (SslMode::Disable, Verified::Nothing),
        None | Some("allow" | "prefer") => (SslMode::Prefer, Verified::Nothing),
        Some("require") if root.is_none() => (SslMode::Require, Verified::Nothing),
        Some("require" | "verify-ca") => (SslMode::Require, Verified::Authority),
        Some("verify-full") => (SslMode::Require, Verified::Host),
        Some(other) => {
            let reason = "expected disable, allow, prefer, require, verify-ca or verify-full";
            return Err(invalid("sslmode", format!("'{other}' is invalid: {reason}")));
        }
    };
    let provider = brine_tls::provider();
    let revoked = text("sslcrl")?;
    // Reading the host's authorities takes milliseconds, and a minion opens its returners for each return.
    let roots = if verified == Verified::Nothing && root.is_none() && revoked.is_none() {
        RootCertStore::empty()
    } else {
        let roots = brine_tls::roots(root.as_deref().map(Path::new));
        roots.map_err(|error| invalid("sslrootcert", error.to_string()))?
    };
    let mut verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    if let Some(path) = revoked {
        let lists = CertificateRevocationListDer::pem_file_iter(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let failed = |error| invalid("sslcrl", format!("reading {path} failed: {error}"));
        verifier = verifier.with_crls(lists.map_err(failed)?).allow_unknown_revocation_status();
    }
    let verifier = match verifier.build() {
        Ok(verifier) => Some(verifier),
        // Without trusted authorities nothing can be verified, and here nothing has to be.
        Err(_) if verified == Verified::Nothing => None,
        Err(error) => return Err(invalid("sslrootcert", error.to_string())),
    };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| invalid("sslmode", error.to_string()))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Verifier::new(verified, verifier));
    let config = match (text("sslcert")?, text("sslkey")?) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let failed = |name, path: &str, error: &dyn std::fmt::Display| {
                invalid(name, format!("reading {path} failed: {error}"))
            };
            let chain = CertificateDer::pem_file_iter(&certificate)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| failed("sslcert", &certificate, &error))?;
            let secret = PrivateKeyDer::from_pem_file(&key).map_err(|error| failed("sslkey", &key, &error))?;
            builder.with_client_auth_cert(chain, secret).map_err(|error| failed("sslcert", &certificate, &error))?
        }
        (Some(_), None) => return Err(invalid("sslkey", "it is required with sslcert".to_owned())),
        (None, Some(_)) => return Err(invalid("sslcert", "it is required with sslkey".to_owned())),
    };
    Ok(Tls { mode, connector: Connector(Arc::new(config)) })
}

/// Creates TLS connections.
#[derive(Clone)]
pub(super) struct Connector(Arc<ClientConfig>);

impl<S: AsyncRead + AsyncWrite + Unpin> MakeTlsConnect<S> for Connector {
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Self::Error> {
        let host = ServerName::try_from(host.to_owned())?;
        Ok(Handshake { connector: TlsConnector::from(Arc::clone(&self.0)), host })
    }
}

/// A handshake with one host.
pub(super) struct Handshake {
    connector: TlsConnector,
    host: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsConnect<S> for Handshake {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Connecting<S>;

    fn connect(self, stream: S) -> Connecting<S> {
        Connecting(self.connector.connect(self.host, stream))
    }
}

/// A handshake in progress.
pub(super) struct Connecting<S>(Connect<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Connecting<S> {
    type Output = io::Result<Stream<S>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_ok(Stream)
    }
}

/// An encrypted connection.
pub(super) struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, to)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn invalid_options_are_named() {
        for (opts, expected) in [
            (map! {"p.sslmode" => "maybe"}, "option 'p.sslmode': 'maybe' is invalid: expected disable, "),
            (map! {"p.sslrootcert" => "/nonexistent"}, "option 'p.sslrootcert': reading /nonexistent failed: "),
            (map! {"p.sslcrl" => "/nonexistent"}, "option 'p.sslcrl': reading /nonexistent failed: "),
            (map! {"p.sslcert" => "/nonexistent"}, "option 'p.sslkey': it is required with sslcert"),
            (map! {"p.sslkey" => "/nonexistent"}, "option 'p.sslcert': it is required with sslkey"),
        ] {
            let error = settings("p", &Options::new(&opts, None)).err().unwrap().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
