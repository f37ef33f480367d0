//! Outgoing HTTPS: certificates are verified unless an option says otherwise.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::cve::salt_call;
use crate::support::{System, stderr, stdout};

const BODY: &str = "{\"answer\": \"of the server\"}";

/// Starts a web server with an untrusted certificate. Returns its URL.
fn server() -> String {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let mut request = [0; 4096];
            if stream.read(&mut request).is_ok_and(|read| read > 0) {
                let answer =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{BODY}", BODY.len());
                _ = stream.write_all(answer.as_bytes());
                stream.conn.send_close_notify();
                _ = stream.flush();
            }
        }
    });
    format!("https://localhost:{port}/x")
}

/// Certificates were not verified when files and pages were fetched.
#[test]
fn cve_2020_28972_certificates_are_verified_by_functions() {
    let (system, url) = (System::new(""), server());
    for words in [
        &["http.query", &url][..],
        &["cp.get_url", &url, ""],
        &["cp.cache_file", &url],
        &["cp.get_file_str", &url],
        &["cp.hash_file", &url],
    ] {
        let output = salt_call(&system, words);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(!said.contains("of the server"), "{words:?}: {said}");
    }
    let asked = stdout(&salt_call(&system, &["http.query", &url, "verify_ssl=False"]));
    assert!(asked.contains("of the server"), "an option disables the verification: {asked}");
}

/// The same for sources of pillar.
#[test]
fn cve_2020_35662_certificates_are_verified_by_pillar() {
    let (system, url) = (System::new(""), server());
    for (option, is_accepted) in [("", false), (", verify_ssl: False", true)] {
        let config = format!(
            "id: local\nroot_dir: ROOT/local\nfile_client: local\nlog_level: quiet\next_pillar: [{{http_json: {{url: '{url}'{option}}}}}]\n"
        );
        system.write("tls/etc/minion", &config);
        let etc = system.path("tls/etc");
        let output = crate::support::within_limit(crate::support::BRINE)
            .args(["salt-call", "--local", "-c"])
            .arg(etc)
            .arg("pillar.ls")
            .output()
            .unwrap();
        assert_eq!(stdout(&output).contains("answer"), is_accepted, "{}{}", stdout(&output), stderr(&output));
    }
}
