use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use brine_value::{Map, list, map};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::client::unresolved;
use super::*;

const SERVER: &[u8] = include_bytes!("server.pem");
const AUTHORITY: &[u8] = include_bytes!("authority.pem");

/// Starts a server whose certificate is from an authority of its own.
fn sealed_server() -> SocketAddr {
    let certificates = CertificateDer::pem_slice_iter(SERVER).collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(SERVER).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(brine_tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(certificates, key).unwrap());
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(session, stream.unwrap());
            // A client that does not trust the server disconnects.
            if stream.read(&mut [0; 1024]).is_ok() {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").unwrap();
            }
        }
    });
    address
}

#[test]
fn resolver_errors_have_numbers() {
    let lookup = "failed to lookup address information: ";
    for (text, reported) in [
        (format!("{lookup}Temporary failure in name resolution"), "[Errno -3] Temporary failure in name resolution"),
        (format!("{lookup}Name or service not known"), "[Errno -2] Name or service not known"),
        (format!("{lookup}Try again"), "failed to lookup address information: Try again"),
        ("no more".into(), "no more"),
    ] {
        assert_eq!(unresolved(&text), reported);
    }
}

#[test]
fn servers_are_trusted_by_their_authority() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = directory.path().join("ca.pem");
    std::fs::write(&bundle, AUTHORITY).unwrap();
    let url = format!("https://localhost:{}/", sealed_server().port());
    let with = |ca_bundle: Option<&PathBuf>, trust_anyone| {
        let access = Access { ca_bundle: ca_bundle.cloned(), ..Access::default() };
        let options = Options { access, trust_anyone, ..Options::default() };
        let mut response = Client::new(options).unwrap().get(&url)?;
        read(&mut response, &Access::default())
    };
    assert_eq!(with(Some(&bundle), false).unwrap(), b"ok");
    assert_eq!(with(None, true).unwrap(), b"ok");
    let report = with(None, false).unwrap_err().to_string();
    let failed = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: ";
    assert_eq!(report, format!("{failed}unable to get local issuer certificate"));
}

#[test]
fn errors_of_certificates_have_the_words_of_openssl() {
    use rustls::{CertificateError, Error, OtherError};
    for (reason, expected) in [
        (CertificateError::Expired, "certificate has expired"),
        (CertificateError::NotValidYet, "certificate is not yet valid"),
        (CertificateError::Revoked, "certificate revoked"),
        (CertificateError::Other(OtherError(Arc::new(std::io::Error::other("CaUsedAsEndEntity")))), {
            "self-signed certificate"
        }),
        (CertificateError::UnknownIssuer, "unable to get local issuer certificate"),
    ] {
        // As ureq hands it on: within an error of input and output, or alone.
        let error = Error::InvalidCertificate(reason);
        let wrapped = ureq::Error::Io(std::io::Error::new(std::io::ErrorKind::InvalidData, error.clone()));
        let message = format!("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {expected}");
        assert_eq!(WebError::Request(wrapped).to_string(), message);
        assert_eq!(WebError::Request(ureq::Error::Rustls(error)).to_string(), message);
    }
}

#[test]
fn a_bundle_without_certificates_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty.pem");
    std::fs::write(&empty, "no certificate\n").unwrap();
    for path in [empty, directory.path().join("nope.pem")] {
        let access = Access { ca_bundle: Some(path.clone()), ..Access::default() };
        let client = Client::new(Options { access, ..Options::default() });
        let report = client.err().unwrap().to_string();
        assert!(
            report.starts_with(&format!("reading the certificates in {} (ca_bundle) failed", path.display())),
            "{report}"
        );
    }
}

/// Reads the head of a request to its end: a connection that is closed with unread data is reset.
fn head(stream: &mut impl Read) -> String {
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    while !head.ends_with(b"\r\n\r\n") {
        let read = stream.read(&mut part).unwrap();
        head.extend_from_slice(&part[..read]);
    }
    String::from_utf8(head).unwrap()
}

/// Starts a server that also acts as a proxy for any host. It answers with the first lines of the requests and the
/// login at the proxy.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = head(&mut stream);
            if asked.starts_with("CONNECT") {
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
                asked += &head(&mut stream);
            }
            let is_relevant =
                |line: &&str| line.to_lowercase().starts_with("proxy-authorization") || line.contains(" HTTP/");
            let body = asked.lines().filter(is_relevant).collect::<Vec<_>>().join("|");
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn the_configured_proxy_is_used() {
    let (proxy, server) = (echo(), echo());
    let access_with = |more: Map| {
        let mut options = map! {"proxy_host" => "127.0.0.1", "proxy_port" => proxy.port()};
        options.extend(more);
        Access::of(&MinionConfig::load(std::path::Path::new("/nonexistent"), &options).unwrap().config)
    };
    let fetched = |access: &Access, url: &str| String::from_utf8(fetch(access, url).unwrap()).unwrap();
    let direct = format!("http://127.0.0.1:{}/x", server.port());
    let through = "CONNECT files.example:80 HTTP/1.1|GET /x HTTP/1.1";
    assert_eq!(fetched(&access_with(map! {}), "http://files.example/x"), through);
    let login = map! {"proxy_username" => "me", "proxy_password" => "a:b@c"};
    let said = fetched(&access_with(login), "http://files.example/x");
    assert_eq!(said.split('|').count(), 3, "{said}");
    assert!(said.to_lowercase().contains("proxy-authorization: basic bwu6ytpiqgm="), "{said}");
    for access in [access_with(map! {"no_proxy" => list!["127.0.0.1"]}), access_with(map! {"proxy_port" => 0})] {
        assert_eq!(fetched(&access, &direct), "GET /x HTTP/1.1");
    }
}

#[test]
fn a_timeout_of_zero_is_no_limit() {
    for (seconds, expected) in [
        (20.0, Duration::from_secs(20)),
        (0.5, Duration::from_millis(500)),
        (0.0, NO_LIMIT),
        (-1.0, NO_LIMIT),
        (f64::NAN, NO_LIMIT),
        (f64::INFINITY, NO_LIMIT),
        (1e300, NO_LIMIT),
    ] {
        assert_eq!(timeout(seconds), expected, "{seconds}");
    }
}

#[test]
fn bodies_and_times_are_bounded_by_the_options() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\n0123456789").unwrap();
        }
    });
    let access = |max_body| Access::of(&MinionConfig { http_max_body: max_body, ..MinionConfig::default() });
    assert_eq!(fetch(&access(10), &url).unwrap(), b"0123456789");
    let error = fetch(&access(9), &url).unwrap_err().to_string();
    assert!(error.contains("larger than 9 bytes; the option `http_max_body`"), "{error}");
    // A server that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let config = MinionConfig { http_request_timeout: 0.1, ..MinionConfig::default() };
    let error = fetch(&Access::of(&config), &url).unwrap_err().to_string();
    assert!(error.contains("timeout"), "{error}");
}
