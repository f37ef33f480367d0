//! The files, ports and names of an installed daemon, as its configuration has them.

use std::path::{Path, PathBuf};

use brine_config::{MasterConfig, MinionConfig, RestConfig};

use crate::finding::Role;

/// The names of a master's sockets below `sock_dir`.
const MASTER_SOCKETS: [&str; 3] = ["master_event_pub.ipc", "master_event_pull.ipc", "publish_pull.ipc"];

/// A directory of the daemon.
#[derive(Debug, Clone)]
pub struct Directory {
    /// The option that names it.
    pub option: &'static str,
    /// Its path.
    pub path: PathBuf,
    /// The permissions that nobody may have.
    pub forbidden: u32,
}

/// A file of a key.
#[derive(Debug, Clone)]
pub struct KeyFile {
    /// Its path.
    pub path: PathBuf,
    /// Whether it holds a secret.
    pub is_private: bool,
}

/// A port on which the daemon listens.
#[derive(Debug, Clone)]
pub struct Port {
    /// The option that names it.
    pub option: &'static str,
    /// The address.
    pub host: String,
    /// The number.
    pub port: u16,
}

/// The certificate of the REST API.
#[derive(Debug, Clone)]
pub struct CertificateFiles {
    /// The file of the certificate.
    pub certificate: PathBuf,
    /// The file of its key.
    pub key: PathBuf,
    /// Whether the API has generated it, and would do so again.
    pub is_generated: bool,
}

/// An installed daemon.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The daemon.
    pub role: Role,
    /// The directory of the configuration.
    pub config_dir: PathBuf,
    /// Whether its daemon has to run: a masterless minion can do without.
    pub needs_daemon: bool,
    /// The directories that the daemon writes.
    pub directories: Vec<Directory>,
    /// The directory of its keys.
    pub pki_dir: PathBuf,
    /// The directory of its caches.
    pub cachedir: PathBuf,
    /// The file with its PID.
    pub pidfile: PathBuf,
    /// Its log.
    pub log_file: PathBuf,
    /// The option `user`.
    pub user: Option<String>,
    /// The file of its private key.
    pub private_key: PathBuf,
    /// The passphrase of the private key.
    pub key_pass: Option<String>,
    /// All files of keys whose modes matter.
    pub keys: Vec<KeyFile>,
    /// The ports on which it listens.
    pub ports: Vec<Port>,
    /// The local sockets on which it listens.
    pub sockets: Vec<PathBuf>,
    /// The masters of a minion.
    pub masters: Vec<(String, u16)>,
    /// The file of the store of a master.
    pub store: Option<PathBuf>,
    /// `event_journal_size`, in bytes.
    pub journal_size: u64,
    /// The certificate of the REST API, if it is configured.
    pub certificate: Option<CertificateFiles>,
}

/// Returns a path as the daemon of this configuration sees it.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl Installation {
    /// Returns the installation of a master.
    pub fn master(config: &MasterConfig) -> Self {
        let private: u32 = if config.permissive_pki_access { 0o027 } else { 0o077 };
        let pki_dir = absolute(&config.pki_dir);
        let cachedir = absolute(&config.cachedir);
        let sock_dir = absolute(&config.sock_dir);
        let user = config.user.as_deref().filter(|user| !user.is_empty());
        let root_key = match user {
            None | Some("root") => ".root_key".to_owned(),
            Some(user) => format!(".{user}_key"),
        };
        let file = |path: PathBuf, is_private| KeyFile { path, is_private };
        let port = |option, host: &str, port| Port { option, host: host.to_owned(), port };
        let mut ports = vec![
            port("publish_port", &config.interface, config.publish_port),
            port("ret_port", &config.interface, config.ret_port),
        ];
        if config.metrics_port > 0 {
            ports.push(port("metrics_port", &config.metrics_interface, config.metrics_port));
        }
        Installation {
            role: Role::Master,
            needs_daemon: true,
            config_dir: absolute(&config.config_dir),
            directories: vec![
                Directory { option: "pki_dir", path: pki_dir.clone(), forbidden: private },
                Directory { option: "cachedir", path: cachedir.clone(), forbidden: 0o022 },
                Directory { option: "sock_dir", path: sock_dir.clone(), forbidden: 0o022 },
            ],
            pidfile: absolute(&config.pidfile),
            log_file: config.log_file.clone(),
            user: user.map(str::to_owned),
            private_key: pki_dir.join("master.pem"),
            key_pass: config.key_pass.clone(),
            keys: vec![
                file(pki_dir.join("master.pem"), true),
                file(pki_dir.join("master.pub"), false),
                file(pki_dir.join("sealing.key"), true),
                file(pki_dir.join(format!("{}.pem", config.master_sign_key_name)), true),
                file(cachedir.join(root_key), true),
                file(cachedir.join(".salt-api.key"), true),
            ],
            ports,
            sockets: MASTER_SOCKETS.iter().map(|name| sock_dir.join(name)).collect(),
            masters: Vec::new(),
            store: Some(cachedir.join("brine.redb")),
            journal_size: config.event_journal_size << 20,
            certificate: certificate(config, &pki_dir),
            pki_dir,
            cachedir,
        }
    }

    /// Returns the installation of a minion; `sockets` are the names of its local sockets.
    pub fn minion(config: &MinionConfig, sockets: &[String]) -> Self {
        let pki_dir = absolute(&config.pki_dir);
        let cachedir = absolute(&config.cachedir);
        let sock_dir = absolute(&config.sock_dir);
        let file = |name: &str, is_private| KeyFile { path: pki_dir.join(name), is_private };
        Installation {
            role: Role::Minion,
            needs_daemon: !is_masterless(config),
            config_dir: absolute(&config.config_dir),
            directories: vec![
                Directory { option: "pki_dir", path: pki_dir.clone(), forbidden: 0o077 },
                Directory { option: "cachedir", path: cachedir.clone(), forbidden: 0o022 },
                Directory { option: "sock_dir", path: sock_dir.clone(), forbidden: 0o022 },
            ],
            pidfile: absolute(&config.pidfile),
            log_file: config.log_file.clone(),
            user: config.user.clone().filter(|user| !user.is_empty()),
            private_key: pki_dir.join("minion.pem"),
            key_pass: None,
            keys: vec![file("minion.pem", true), file("minion.pub", false), file("minion_master.pub", false)],
            ports: Vec::new(),
            sockets: sockets.iter().map(|name| sock_dir.join(name)).collect(),
            // The masters of `func` are only known after the call of the function.
            masters: if is_masterless(config) || config.master_type == "func" { Vec::new() } else { config.masters() },
            store: None,
            journal_size: 0,
            certificate: None,
            pki_dir,
            cachedir,
        }
    }

    /// Returns the installation of the REST API of a master.
    pub fn api(config: &MasterConfig) -> Self {
        let options = RestConfig::new(config).map(|(options, _)| options).unwrap_or_default();
        let port = Port { option: "rest_cherrypy.port", host: options.host, port: options.port };
        Installation { ports: vec![port], ..Self::beside(config, Role::Api, &config.api_pidfile, &config.api_logfile) }
    }

    /// Returns the installation of the syndic of a master; `port` is that of the masters above, unless an option has one.
    pub fn syndic(config: &MasterConfig, port: u16) -> Self {
        let mut above =
            MinionConfig { master_port: config.syndic_master_port.unwrap_or(port), ..MinionConfig::default() };
        above.set_masters(config.syndic_master.clone());
        let own = Self::beside(config, Role::Syndic, &config.syndic_pidfile, &config.syndic_log_file);
        let user = config.syndic_user.clone().filter(|user| !user.is_empty()).or_else(|| own.user.clone());
        Installation { masters: above.masters(), user, ..own }
    }

    /// Returns the installation of a daemon that works for the master on its host, and whose directories are the master's.
    fn beside(config: &MasterConfig, role: Role, pidfile: &Path, log_file: &Path) -> Self {
        Installation {
            role,
            pidfile: absolute(pidfile),
            log_file: log_file.to_owned(),
            directories: Vec::new(),
            keys: Vec::new(),
            ports: Vec::new(),
            sockets: Vec::new(),
            store: None,
            certificate: None,
            ..Self::master(config)
        }
    }

    /// Returns the name of the tool that is the daemon, such as `salt-master`.
    pub fn tool(&self) -> String {
        format!("salt-{}", self.role.name())
    }

    /// Returns the options that name this configuration on a command line.
    pub fn options(&self) -> String {
        if self.config_dir == Path::new(brine_config::DEFAULT_DIRECTORY) {
            return String::new();
        }
        format!(" -c {}", crate::finding::quoted(&self.config_dir))
    }
}

fn is_masterless(config: &MinionConfig) -> bool {
    config.is_masterless() || config.is_local()
}

/// Returns the files of the API's certificate if the API is configured with TLS, or has run.
fn certificate(config: &MasterConfig, pki_dir: &Path) -> Option<CertificateFiles> {
    let (options, _) = RestConfig::new(config).ok()?;
    if options.disable_ssl {
        return None;
    }
    match (options.ssl_crt, options.ssl_key) {
        (Some(certificate), Some(key)) => Some(CertificateFiles { certificate, key, is_generated: false }),
        (None, None) => {
            let (certificate, key) = (pki_dir.join("api.crt"), pki_dir.join("api.key"));
            (certificate.exists() || key.exists()).then_some(CertificateFiles { certificate, key, is_generated: true })
        }
        (certificate, key) => Some(CertificateFiles {
            certificate: certificate.unwrap_or_default(),
            key: key.unwrap_or_default(),
            is_generated: false,
        }),
    }
}
