//! `rest`: a web service, at the URL of the option `^url`, authenticates users. It receives a form POST with the fields
//! `username` and `password`; status 200 authenticates the user. A JSON list in the response body contains entries,
//! which are merged with those of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use brine_value::{Map, Value, json};
use ureq::Agent;
use ureq::tls::TlsConfig;

use super::{Backend, BackendError, Proven, tls};

/// The deadline of the response.
const DEADLINE: Duration = Duration::from_secs(10);
/// The maximum size of a response, in bytes.
const MAX_ANSWER: u64 = 1 << 20;

pub(super) struct Rest {
    url: String,
    ca_bundle: Option<PathBuf>,
    deadline: Duration,
}

impl Rest {
    pub fn new(options: &Map) -> Result<Self, BackendError> {
        let text = |name: &str| options.get(name).and_then(Value::as_str).map(str::to_owned);
        let invalid = |reason: &str| BackendError::Option { system: "rest", option: "^url", reason: reason.to_owned() };
        let url = text("^url").ok_or_else(|| invalid("is missing: expected the URL of a service"))?;
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err(invalid("is invalid: expected a URL with http:// or https://"));
        }
        Ok(Rest { url, ca_bundle: text("^ca_bundle").map(PathBuf::from), deadline: DEADLINE })
    }

    /// Creates the client. It neither follows redirects nor uses proxies, so that no other host receives the password.
    fn agent(&self) -> Result<Agent, String> {
        let mut config = Agent::config_builder()
            .timeout_global(Some(self.deadline))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .proxy(None);
        if self.url.starts_with("https://") {
            let trusted = tls::authorities(self.ca_bundle.as_deref())?;
            let tls = TlsConfig::builder()
                .unversioned_rustls_crypto_provider(brine_tls::provider())
                .root_certs(brine_tls::root_certs(&trusted));
            config = config.tls_config(tls.build());
        }
        Ok(config.build().into())
    }

    fn request(&self, user: &str, password: &str) -> Result<Option<Vec<Value>>, String> {
        let fields = [("username", user), ("password", password)];
        let mut answer = self.agent()?.post(&self.url).send_form(fields).map_err(|error| error.to_string())?;
        if answer.status() != 200 {
            tracing::info!(status = answer.status().as_u16(), "the service of external_auth rest refuses a user");
            return Ok(None);
        }
        let body = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_string();
        let body = body.map_err(|error| error.to_string())?;
        if body.trim().is_empty() {
            return Ok(Some(Vec::new()));
        }
        match json::from_json(&body) {
            Ok(Value::List(entries)) => Ok(Some(entries)),
            Ok(Value::Nil) => Ok(Some(Vec::new())),
            _ => Err("its answer is invalid: expected a JSON list of entries".to_owned()),
        }
    }

    /// Returns the URL without credentials and query.
    fn url_without_login(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let host = authority.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{host}{}", path.split(['?', '#']).next().unwrap_or_default())
    }
}

impl Backend for Rest {
    fn authenticate(&self, user: &str, password: &str) -> Result<Option<Proven>, BackendError> {
        let failed = |reason| BackendError::Server { server: self.url_without_login(), reason };
        let entries = self.request(user, password).map_err(failed)?;
        Ok(entries.map(|entries| Proven { groups: Vec::new(), entries: Some(entries) }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use brine_value::{list, map};

    use super::*;

    /// Starts a service that answers requests with the expected body, and others with 401. Returns its URL.
    fn service(expected: &'static str, answer: &'static str) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let (mut request, mut part) = (String::new(), [0; 4096]);
                while request.split_once("\r\n\r\n").is_none_or(|(_, body)| body.len() < expected.len()) {
                    match stream.read(&mut part).unwrap() {
                        0 => break,
                        length => request += &String::from_utf8_lossy(&part[..length]),
                    }
                }
                let is_right = request.starts_with("POST /auth ") && request.ends_with(expected);
                let answer = if is_right { answer } else { "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n" };
                _ = stream.write_all(answer.as_bytes());
            }
        });
        format!("http://user:s3cret@127.0.0.1:{port}/auth")
    }

    fn rest(url: String) -> Rest {
        Rest::new(&map! {"^url" => url}).unwrap()
    }

    #[test]
    fn the_service_authenticates_and_returns_entries() {
        let form = "username=fred&password=p%26w";
        for (answer, entries) in [
            (
                "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[\"test.*\", {\"web*\": [\"pkg.*\"]}]",
                Some(list!["test.*", map! {"web*" => list!["pkg.*"]}]),
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", Some(list![])),
            ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nnull", Some(list![])),
            ("HTTP/1.1 204 OK\r\nConnection: close\r\n\r\n", None),
            ("HTTP/1.1 302 Found\r\nLocation: /auth\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", None),
            ("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", None),
        ] {
            let proven = rest(service(form, answer)).authenticate("fred", "p&w").unwrap();
            assert_eq!(proven.map(|proven| Value::from(proven.entries)), entries, "{answer}");
        }
        let service = rest(service(form, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert_eq!(service.authenticate("fred", "other").unwrap(), None);
    }

    #[test]
    fn service_failures_are_errors_not_denials() {
        let form = "username=fred&password=pw";
        let invalid = rest(service(form, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"a\": 1}"));
        let error = invalid.authenticate("fred", "pw").unwrap_err().to_string();
        assert!(error.ends_with("/auth failed: its answer is invalid: expected a JSON list of entries"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");

        let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut hanging = rest(format!("http://{}/auth?token=s3cret", silent.local_addr().unwrap()));
        hanging.deadline = Duration::from_millis(200);
        let error = hanging.authenticate("fred", "pw").unwrap_err().to_string();
        assert!(error.contains("/auth failed: ") && !error.contains("s3cret"), "{error}");
        assert!(Rest::new(&Map::new()).is_err() && Rest::new(&map! {"^url" => "ftp://x"}).is_err());
    }
}
