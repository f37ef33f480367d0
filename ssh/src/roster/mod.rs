//! Rosters: the hosts, how to reach them, and the hosts of a target.
//!
//! `flat.rs`, `ansible.rs`, `ssh_config.rs`, `cache.rs`, `directory.rs`, `known_hosts.rs`, `range/`, `scan.rs` and
//! `clustershell/` each implement a roster of Salt; `custom/` calls custom modules (`_roster`). `direct/` handles
//! targets that name a host which may be missing from the roster.

mod ansible;
mod cache;
mod clustershell;
mod custom;
pub mod direct;
mod directory;
mod flat;
mod known_hosts;
mod range;
mod scan;
mod ssh_config;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_host::programs::System;
use brine_ids::MinionId;
use brine_jinja::Host as Functions;
use brine_target::{Target, TargetError, TargetFacts, TargetKind};
use brine_text::nearest::nearest;
use brine_value::{FromValue, Map, Value};
use indexmap::IndexMap;

/// The error of a roster.
#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    /// The file cannot be read.
    #[error("reading the roster {path} failed: {reason}; name another one with --roster-file")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The content of the file is invalid.
    #[error("the roster {path} is invalid: {reason}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The roster does not exist.
    #[error(
        "the roster '{0}' is not supported: use flat, ansible, cache, clustershell, dir, range, scan, sshconfig, \
         sshknownhosts or a module of yours in _roster (--roster)"
    )]
    Unknown(String),
    /// The target is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An external program of a roster failed, or its output or the target is invalid. The message describes the error.
    #[error("{0}")]
    Program(String),
}

/// One host of a roster. Fields have Salt's names, except where a comment names another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RosterHost {
    /// The name or address.
    pub host: String,
    /// The login user.
    pub user: Option<String>,
    /// The login password.
    pub passwd: Option<String>,
    /// The TCP port.
    pub port: Option<u16>,
    /// Whether functions run as root by `sudo`.
    pub sudo: bool,
    /// The user that functions run as by `sudo`.
    pub sudo_user: Option<String>,
    /// The private key (`priv`), or `agent-forwarding`.
    pub key: Option<String>,
    /// The passphrase of the private key.
    pub priv_passwd: Option<String>,
    /// The timeout of connecting, in seconds.
    pub timeout: Option<u64>,
    /// Options of the minion that runs the functions, as in a minion configuration.
    pub minion_opts: Map,
    /// Additional grains, which override those of the host.
    pub grains: Map,
    /// The directory of the program on the host.
    pub thin_dir: Option<String>,
    /// The umask (`cmd_umask`).
    pub umask: Option<String>,
    /// Options of `ssh`, each without `-o`.
    pub ssh_options: Vec<String>,
    /// `PATH` on the host.
    pub set_path: Option<String>,
    /// Whether only the given key is tried.
    pub identities_only: bool,
    /// The `ssh` configuration file that replaces the user's own (`config_file`).
    pub config_file: Option<String>,
    /// Functions that other hosts may call here through `mine.get`: names, or a mapping of names to arguments.
    pub mine_functions: Value,
    /// Whether `ssh` allocates a terminal, for a `sudo` that requires one.
    pub tty: bool,
    /// A shell command that runs on the host before each call (`ssh_pre_hook`).
    pub pre_hook: Option<String>,
    /// The local path of a script that runs on the host before the first call (`ssh_pre_flight`).
    pub pre_flight: Option<PathBuf>,
    /// The arguments of the script.
    pub pre_flight_args: Vec<String>,
}

/// The maximum number of hosts that an external program, a server or a module may return for a target.
const MAX_HOSTS: usize = 100_000;

/// Options that are accepted but have no effect in Brine: they configure Salt's own program on the host.
const UNUSED: &[&str] = &["shim_dir", "winrm", "hashed"];

/// The names of all other fields of a host.
const FIELDS: &[&str] = &[
    "host",
    "user",
    "passwd",
    "port",
    "sudo",
    "sudo_user",
    "priv",
    "priv_passwd",
    "timeout",
    "minion_opts",
    "grains",
    "thin_dir",
    "cmd_umask",
    "ssh_options",
    "set_path",
    "identities_only",
    "config_file",
    "mine_functions",
    "tty",
    "ssh_pre_hook",
    "ssh_pre_flight",
    "ssh_pre_flight_args",
];

/// Returns the names of the fields of a host.
pub fn fields() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().chain(UNUSED).copied()
}

fn is_known(field: &str) -> bool {
    // Those with underscores in front are data of custom rosters and templates.
    FIELDS.contains(&field) || UNUSED.contains(&field) || field.starts_with('_')
}

/// The settings of rosters.
#[derive(Debug, Clone)]
pub struct RosterOptions {
    /// The name of the roster: `flat` if unset.
    pub roster: String,
    /// The path of the roster file.
    pub file: PathBuf,
    /// The default values of host fields.
    pub defaults: Map,
    /// The default user.
    pub user: Option<String>,
    /// The default port.
    pub port: Option<u16>,
    /// The default password.
    pub passwd: Option<String>,
    /// The default private key.
    pub key: Option<String>,
    /// The default passphrase of the private key.
    pub priv_passwd: Option<String>,
    /// Whether functions run as root by `sudo`.
    pub sudo: bool,
    /// The user that functions run as by `sudo`.
    pub sudo_user: Option<String>,
    /// Whether only the given key is tried.
    pub identities_only: bool,
    /// Node groups of the configuration.
    pub nodegroups: Map,
    /// The options of the configuration, for templates.
    pub opts: Map,
    /// The directory of the roster `dir`.
    pub directory: PathBuf,
    /// The domain that the roster `dir` appends to ids of hosts without `host`.
    pub domain: String,
    /// The file of the roster `sshknownhosts`.
    pub known_hosts: PathBuf,
    /// The ports that the rosters `scan` and `clustershell` try, and the timeout of each.
    pub scan: (Vec<u16>, Duration),
    /// The address of the range server.
    pub range_server: String,
    /// Grains of the minions in the master's cache, by id, for the roster `cache`.
    pub cached: HashMap<String, Map>,
}

/// The unparsed fields of hosts, by id.
type Fields = IndexMap<String, Map>;

/// Returns the hosts of a target, by id.
///
/// # Errors
/// The roster or the target is invalid.
pub fn hosts(
    options: &RosterOptions,
    tgt: &Value,
    kind: TargetKind,
    functions: &Functions,
) -> Result<IndexMap<MinionId, RosterHost>, RosterError> {
    let fields = match options.roster.as_str() {
        "flat" => flat::hosts(options, functions)?,
        "ansible" => ansible::hosts(&System, &options.file)?,
        "sshconfig" => ssh_config::hosts(&options.file)?,
        "cache" => cache::hosts(&options.cached),
        "dir" => directory::hosts(options, tgt.as_str().filter(|_| kind == TargetKind::Glob), functions)?,
        "sshknownhosts" => known_hosts::hosts(&options.known_hosts)?,
        // The target consists of addresses, not ids.
        "scan" => {
            let fields = scan::hosts(tgt, &options.scan.0, options.scan.1);
            return parsed(options, fields, |_, _| true);
        }
        "clustershell" => {
            return listed(options, clustershell::hosts(&System, tgt, kind, &options.scan)?, "ClusterShell");
        }
        "range" => {
            return listed(options, range::hosts(&options.range_server, tgt, kind)?, "the range server");
        }
        // The module has already matched the target.
        other => {
            let fields = custom::hosts(other, options, tgt, kind, functions)?;
            return parsed(options, fields, |_, _| true);
        }
    };
    if kind == TargetKind::Range {
        let listed = range::expand(&options.range_server, tgt)?;
        return parsed(options, fields, |id, _| listed.binary_search_by(|name| name.as_str().cmp(id)).is_ok());
    }
    let target = Target::parse(kind, tgt.clone(), ":", &options.nodegroups)?.sensible(":")?;
    parsed(options, fields, |id, host| target.matches(&Known { id, grains: &host.grains }))
}

/// Parses the hosts that an external `source` has listed. Its errors do not refer to a roster file.
fn listed(
    options: &RosterOptions,
    fields: Fields,
    source: &str,
) -> Result<IndexMap<MinionId, RosterHost>, RosterError> {
    parsed(options, fields, |_, _| true).map_err(|error| match error {
        RosterError::Invalid { reason, .. } => {
            RosterError::Program(format!("the list of {source} is invalid: {reason}"))
        }
        other => other,
    })
}

/// Parses the fields of hosts, and returns the hosts for which `matches` is true.
fn parsed(
    options: &RosterOptions,
    fields_by_id: Fields,
    matches: impl Fn(&str, &RosterHost) -> bool,
) -> Result<IndexMap<MinionId, RosterHost>, RosterError> {
    let invalid = |reason: String| RosterError::Invalid { path: options.file.clone(), reason };
    let mut hosts = IndexMap::new();
    for (id, fields) in fields_by_id {
        let parsed: MinionId = id.parse().map_err(|error| invalid(format!("the id '{id}': {error}")))?;
        let host = host(options, &id, fields).map_err(invalid)?;
        if matches(&id, &host) {
            hosts.insert(parsed, host);
        }
    }
    Ok(hosts)
}

/// The facts about a host that are known before the connection.
struct Known<'a> {
    id: &'a str,
    grains: &'a Map,
}

impl TargetFacts for Known<'_> {
    fn id(&self) -> &str {
        self.id
    }

    fn grains(&self) -> Option<&Map> {
        Some(self.grains)
    }

    fn pillar(&self) -> Option<&Map> {
        None
    }
}

/// Returns a host from its fields and the defaults.
fn host(options: &RosterOptions, id: &str, fields: Map) -> Result<RosterHost, String> {
    for name in fields.keys().map(ToString::to_string).filter(|name| !is_known(name)) {
        let near = nearest(&name, FIELDS).map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        tracing::warn!(host = id, "roster: the field '{name}' is unknown and has no effect{near}");
    }
    let mut all = options.defaults.clone();
    all.extend(fields);
    let wrong = |name: &str, value: &Value| {
        let expected = match name {
            "port" | "timeout" => "a number",
            "minion_opts" | "grains" => "a mapping",
            "ssh_options" => "a list",
            _ => "a text",
        };
        format!("'{name}' of {id}: expected {expected}, got {}", brine_value::python::repr(value))
    };
    let text = |name: &str| match all.get(name) {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::Str(text)) => Ok(Some(text.clone())),
        Some(value @ (Value::Int(_) | Value::UInt(_))) => Ok(Some(value.to_string())),
        Some(other) => Err(wrong(name, other)),
    };
    let flag = |name: &str, otherwise: bool| all.get(name).map_or(otherwise, Value::is_truthy);
    let number = |name: &str| match all.get(name) {
        None | Some(Value::Nil) => Ok(None),
        Some(value) => u64::from_value(value)
            .or_else(|| value.to_string().parse().ok())
            .map(Some)
            .ok_or_else(|| wrong(name, value)),
    };
    let map = |name: &str| match all.get(name) {
        None | Some(Value::Nil) => Ok(Map::new()),
        Some(Value::Map(map)) => Ok(map.clone()),
        Some(other) => Err(wrong(name, other)),
    };
    let list = |name: &str| match all.get(name) {
        None | Some(Value::Nil) => Ok(Vec::new()),
        Some(Value::Str(one)) => Ok(vec![one.clone()]),
        Some(Value::List(all)) => Ok(all.iter().map(ToString::to_string).collect::<Vec<_>>()),
        Some(other) => Err(wrong(name, other)),
    };
    for name in UNUSED.iter().filter(|name| all.get(**name).is_some_and(Value::is_truthy)) {
        tracing::warn!(host = id, "roster: '{name}' has no effect");
    }
    let port = match number("port")? {
        Some(port) => Some(u16::try_from(port).map_err(|_| format!("'port' of {id}: {port} is no TCP port"))?),
        None => options.port,
    };
    let host = RosterHost {
        host: text("host")?.unwrap_or_else(|| id.to_owned()),
        user: text("user")?.or_else(|| options.user.clone()),
        passwd: text("passwd")?.or_else(|| options.passwd.clone()),
        port,
        sudo: flag("sudo", options.sudo),
        sudo_user: text("sudo_user")?.or_else(|| options.sudo_user.clone()),
        key: text("priv")?.or_else(|| options.key.clone()),
        priv_passwd: text("priv_passwd")?.or_else(|| options.priv_passwd.clone()),
        timeout: number("timeout")?,
        minion_opts: map("minion_opts")?,
        grains: map("grains")?,
        thin_dir: text("thin_dir")?,
        umask: text("cmd_umask")?,
        ssh_options: list("ssh_options")?,
        set_path: text("set_path")?,
        identities_only: flag("identities_only", options.identities_only),
        config_file: text("config_file")?,
        mine_functions: all.get("mine_functions").cloned().unwrap_or_default(),
        tty: flag("tty", false),
        pre_hook: text("ssh_pre_hook")?,
        pre_flight: text("ssh_pre_flight")?.map(PathBuf::from),
        pre_flight_args: match all.get("ssh_pre_flight_args") {
            Some(Value::Str(text)) => brine_host::process::split(text)
                .ok_or_else(|| format!("'ssh_pre_flight_args' of {id}: '{text}' has a quote without its end"))?,
            _ => list("ssh_pre_flight_args")?,
        },
    };
    checked(id, host)
}

/// Rejects values that `ssh` or the shell of the host would interpret as options or syntax.
fn checked(id: &str, host: RosterHost) -> Result<RosterHost, String> {
    let is_option = |text: &str| text.starts_with('-');
    let has_control = |text: &str| text.chars().any(char::is_control);
    let named = [
        ("host", Some(&host.host)),
        ("user", host.user.as_ref()),
        ("priv", host.key.as_ref()),
        ("sudo_user", host.sudo_user.as_ref()),
        ("thin_dir", host.thin_dir.as_ref()),
        ("cmd_umask", host.umask.as_ref()),
        ("set_path", host.set_path.as_ref()),
        ("config_file", host.config_file.as_ref()),
    ];
    let all = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
    for (name, value) in all.chain(host.ssh_options.iter().map(|option| ("ssh_options", option))) {
        if is_option(value) || has_control(value) || value.is_empty() {
            return Err(format!("'{name}' of {id}: '{}' is refused", value.escape_debug()));
        }
    }
    if host.host.chars().any(|c| c.is_whitespace() || "'\"`$;&|<>()\\".contains(c)) {
        return Err(format!("'host' of {id}: '{}' is no name of a host", host.host.escape_debug()));
    }
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/_.:${}-+".contains(c);
    match &host.set_path {
        Some(path) if !path.chars().all(is_path) => Err(format!("'set_path' of {id}: '{path}' is refused")),
        _ => Ok(host),
    }
}

/// Reads a roster file.
fn read(path: &Path) -> Result<String, RosterError> {
    brine_system::files::read_to_string(path)
        .map_err(|error| RosterError::File { path: path.to_owned(), reason: error.source.to_string() })
}
