//! The options of the REST API: the section `rest_cherrypy` or `rest_tornado` of the master's configuration.

use std::path::PathBuf;

use brine_value::{FromValue, Map, Value, WrongType};

use super::{MasterConfig, OptionDoc};

/// The names of the sections. If both exist, the first one takes precedence.
pub const REST_SECTIONS: &[&str] = &["rest_cherrypy", "rest_tornado"];

/// Salt's options in these sections that have no effect in Brine, as they tune components that Brine does not have.
const IGNORED: &[&str] = &[
    "collect_stats",
    "event_listener_poll_timeout",
    "expire_responses",
    "log_access_file",
    "log_error_file",
    "log_file",
    "num_processes",
    "pub_uri",
    "queue_size",
    "root_prefix",
    "thread_pool",
    "websockets",
];

/// The error of an invalid option in a section.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("option '{section}.{name}' is invalid: {error}")]
pub struct RestOptionError {
    /// The name of the section.
    pub section: &'static str,
    /// The name of the option.
    pub name: &'static str,
    /// The expected and the actual type.
    pub error: WrongType,
}

macro_rules! rest_options {
    ($($(#[doc = $doc:literal])* $option:ident: $type:ty = $default:expr,)*) => {
        /// The options of the REST API.
        #[derive(Debug, Clone)]
        pub struct RestConfig {
            $($(#[doc = $doc])* pub $option: $type,)*
        }

        impl Default for RestConfig {
            fn default() -> Self {
                RestConfig { $($option: $default,)* }
            }
        }

        impl RestConfig {
            /// The documentation of all options, in the order of their declaration.
            pub const DOCS: &'static [OptionDoc] = &[$(OptionDoc {
                name: stringify!($option),
                doc: &[$($doc),*],
                expected: <$type as FromValue>::EXPECTED,
            }),*];

            fn read(section: &'static str, given: &Map) -> Result<Self, RestOptionError> {
                let mut config = Self::default();
                $(if let Some(value) = given.get(stringify!($option)).filter(|value| !value.is_nil()) {
                    config.$option = <$type as FromValue>::try_from_value(value)
                        .map_err(|error| RestOptionError { section, name: stringify!($option), error })?;
                })*
                Ok(config)
            }
        }
    };
}

rest_options! {
    /// The TCP port.
    port: u16 = 8000,
    /// The address to listen on. `rest_tornado` calls it `address`.
    host: String = "0.0.0.0".into(),
    /// The file with the certificate chain. Without it a self-signed certificate is made in `pki_dir`.
    ssl_crt: Option<PathBuf> = None,
    /// The file with the private key of the certificate.
    ssl_key: Option<PathBuf> = None,
    /// A file with further certificates of the chain.
    ssl_chain: Option<PathBuf> = None,
    /// Whether HTTP is spoken without TLS: behind a proxy, or for tests.
    disable_ssl: bool = false,
    /// Whether unexpected errors are described in responses.
    debug: bool = false,
    /// The file of a single-page application, given to clients that accept HTML.
    app: Option<PathBuf> = None,
    /// The URL of the application.
    app_path: String = "/app".into(),
    /// The directory of static files; the section calls it `static`.
    static_dir: Option<PathBuf> = None,
    /// The URL of the static files.
    static_path: String = "/static".into(),
    /// The file that is given as `/favicon.ico`.
    favicon: Option<PathBuf> = None,
    /// The origins (`https://gui.example.com`) of pages of other servers that may use the user's cookie; `*` for all.
    cors_origin: Vec<String> = Vec::new(),
    /// The URL of webhooks.
    webhook_url: String = "/hook".into(),
    /// Whether webhooks need no login.
    webhook_disable_auth: bool = false,
    /// Secrets of webhooks by path or glob of the path below `webhook_url`: a request must have an HMAC-SHA256 of its
    /// timestamp, path and body in `X-Brine-Signature`, or, for a single path, of its body in `X-Hub-Signature-256` or
    /// `X-Signature`. An entry is the secret, or a mapping of `secret`, `signs` (`request` or `body`) and `repeats`.
    webhook_secrets: Map = Map::new(),
    /// The maximum age of a signed webhook's timestamp, in seconds.
    webhook_max_age: u64 = 300,
    /// The time for which browsers use this host by HTTPS alone after a response by HTTPS, in seconds; 0 to not ask
    /// them to.
    hsts_max_age: u64 = 31_536_000,
    /// Whether `/stats` needs no login.
    stats_disable_auth: bool = false,
    /// Whether there are sessions: `/login`, `/logout`, `/minions` and `/jobs`.
    enable_sessions: bool = true,
    /// The maximum size of the body of a request, in bytes.
    max_request_body_size: usize = 1 << 20,
    /// The timeout of the head of a request, also of an idle connection, in seconds.
    head_timeout: u64 = 30,
    /// The timeout of the whole body of a request, in seconds.
    body_timeout: u64 = 60,
    /// The addresses from which requests are answered; all if it is empty.
    authorized_ips: Vec<String> = Vec::new(),
    /// The addresses from which users may log in: `users`, a mapping of user to addresses, each `*` for all.
    api_acl: Map = Map::new(),
    /// The maximum number of connections.
    max_connections: usize = 20_000,
    /// The maximum number of connections of one address, other than this host's own.
    max_connections_per_address: usize = 2_000,
    /// The maximum number of connections of clients that have not logged in, half of it for one address other than
    /// this host's own. When there are more, those that are idle for longest are closed, of the address with the most.
    max_unauthenticated_connections: usize = 250,
    /// The memory of the bodies of clients that have not logged in, in bytes, half of it for one address other than
    /// this host's own.
    unauthenticated_memory: usize = 8 << 20,
}

impl RestConfig {
    /// Reads the section of a master's configuration. Also returns the names in it that have no effect, each with
    /// whether it is an option of Salt.
    pub fn new(config: &MasterConfig) -> Result<(Self, Vec<(String, bool)>), RestOptionError> {
        let sections = [&config.rest_cherrypy, &config.rest_tornado];
        let entry = REST_SECTIONS.iter().zip(sections).find(|(_, options)| !options.is_empty());
        let Some((section, options)) = entry else { return Ok((Self::default(), Vec::new())) };
        let mut options = options.clone();
        for (salts, own) in [("address", "host"), ("static", "static_dir")] {
            if let Some(value) = options.shift_remove(salts) {
                options.entry(own.into()).or_insert(value);
            }
        }
        let mut read = Self::read(section, &options)?;
        for url in [&mut read.app_path, &mut read.static_path, &mut read.webhook_url] {
            *url = format!("/{}", url.trim_matches('/'));
        }
        let is_known = |name: &str| Self::DOCS.iter().any(|doc| doc.name == name);
        let unknown = options.keys().map(Value::to_string).filter(|name| !is_known(name));
        Ok((read, unknown.map(|name| (name.clone(), IGNORED.contains(&name.as_str()))).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::{list, map};

    #[test]
    fn sections_are_read_as_they_are() {
        let section = map! {
            "port" => 8443, "ssl_crt" => "/x.crt", "static" => "/srv/gui", "app_path" => "gui/", "cors_origin" => "*",
            "webhook_url" => "hook/x", "thread_pool" => 5, "prot" => 1, "disable_ssl" => "True",
        };
        let config = MasterConfig { rest_cherrypy: section, ..MasterConfig::default() };
        let (read, unknown) = RestConfig::new(&config).unwrap();
        assert_eq!((read.port, read.host.as_str(), read.disable_ssl), (8443, "0.0.0.0", true));
        assert_eq!((read.app_path.as_str(), read.webhook_url.as_str()), ("/gui", "/hook/x"));
        assert_eq!(read.static_dir.as_deref(), Some(std::path::Path::new("/srv/gui")));
        assert_eq!(read.cors_origin, ["*"]);
        assert_eq!(unknown, [("thread_pool".to_owned(), true), ("prot".to_owned(), false)]);
    }

    #[test]
    fn tornado_has_another_name_for_the_address() {
        let section = map! {"address" => "127.0.0.1", "cors_origin" => list!["https://a", "https://b"]};
        let config = MasterConfig { rest_tornado: section, ..MasterConfig::default() };
        let (read, unknown) = RestConfig::new(&config).unwrap();
        assert_eq!((read.host.as_str(), read.cors_origin.len(), unknown.len()), ("127.0.0.1", 2, 0));
    }

    #[test]
    fn invalid_options_are_named() {
        let config = MasterConfig { rest_cherrypy: map! {"port" => "x"}, ..MasterConfig::default() };
        let error = RestConfig::new(&config).unwrap_err().to_string();
        assert!(error.starts_with("option 'rest_cherrypy.port' is invalid: expected "), "{error}");
    }
}
