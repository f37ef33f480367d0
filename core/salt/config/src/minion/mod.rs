//! The options of the minion.

use std::path::PathBuf;

use brine_value::{Map, Value};

use super::options::{below_root, log_below_root};
use super::shared::shared_options;
use super::{Number, Roots, Transport, UnknownArguments};

shared_options! {
    /// The minion's configuration, read from `/etc/salt/minion` and `minion.d/*.conf`.
    MinionConfig for "minion";

    /// The id of the minion; by default the content of `minion_id` in the configuration directory, or the host name.
    id: Option<String> = None,
    /// Whether the host name becomes the id in lower case.
    minion_id_lowercase: bool = false,
    /// The domain that is removed from the end of the host name when it becomes the id; `True` for all after the first dot.
    minion_id_remove_domain: Value = Value::Bool(false),
    /// The domain that is added to an id that does not end in it or in a dot.
    append_domain: String = String::new(),
    /// Whether the daemon stores an id that is not configured in `minion_id` in the configuration directory, where it is
    /// read from then on, so that the minion keeps it if the host gets another name.
    minion_id_caching: bool = true,
    /// The execution function that returns the id of a minion without `id`: its name, or a mapping of its name to its
    /// keyword arguments.
    id_function: Value = Value::Map(Map::new()),
    /// The paths that end with the id of the minion, for several minions on one host: `pki_dir`, `cachedir`,
    /// `extension_modules` and `pidfile`.
    append_minionid_config_dirs: Vec<String> = Vec::new(),
    /// The address of the master, with or without port, or a list of addresses of several masters.
    master: Vec<String> = vec!["salt".into()],
    /// `str` for a minion that is connected to all of its masters at once; `failover` for one master at a time,
    /// `distributed` for the same with a first master by the minion's id, `func` if `master` is the name of an execution
    /// function that returns the masters, and `disable` for a minion without a master.
    master_type: String = "str".into(),
    /// Whether the order of several masters is random.
    random_master: bool = false,
    /// The same as `random_master`.
    master_shuffle: bool = false,
    /// The number of seconds between two checks that the master of several answers; 0 for none: then only the end of the
    /// connection is noticed.
    master_alive_interval: Number = Number::of(0),
    /// Whether the minion returns to the first of several masters as soon as that answers.
    master_failback: bool = false,
    /// The number of seconds between two tries to return to the first master; 0 for `master_alive_interval`, or 30.
    master_failback_interval: Number = Number::of(0),
    /// The TCP port of the master for requests.
    master_port: u16 = 4506,
    /// The TCP port of the master for publishes; by default the port that the master names when it accepts the minion.
    publish_port: Option<u16> = None,
    /// The address of this host from which the minion connects to its masters; by default the system's choice.
    source_address: Option<String> = None,
    /// The network interface whose address is used, unless `source_address` names one.
    source_interface_name: Option<String> = None,
    /// Whether the addresses of masters are those of IPv6 alone (`True`) or of IPv4 alone (`False`); by default of both.
    ipv6: Option<bool> = None,
    /// The TCP port from which the minion connects for requests; 0 for any.
    source_ret_port: u16 = 0,
    /// The TCP port from which the minion connects for publishes; 0 for any.
    source_publish_port: u16 = 0,
    /// The fingerprint of the master's key that is required at the first contact.
    master_finger: Option<String> = None,
    /// Whether the master's public key must be signed by the key `master_sign_key_name`. A signed key may replace the
    /// stored one.
    verify_master_pubkey_sign: bool = false,
    /// Whether the signature is also verified if the master's key is the stored one.
    always_verify_signature: bool = false,
    /// The name of the public key in `pki_dir` that verifies the signature.
    master_sign_key_name: String = "master_sign".into(),
    /// The directory of the minion's key and the master's public key.
    pki_dir: PathBuf = "/etc/salt/pki/minion".into(),
    /// The directory of cached files, jobs and grains.
    cachedir: PathBuf = "/var/cache/salt/minion".into(),
    /// The directory of the sockets of the minion's event bus.
    sock_dir: PathBuf = "/var/run/salt/minion".into(),
    /// The file that holds the PID of the daemon.
    pidfile: PathBuf = "/var/run/salt-minion.pid".into(),
    /// The log file of the daemon, also used by its tools if they can write to it; `''` for none.
    log_file: PathBuf = "/var/log/salt/minion".into(),

    /// The number of seconds between two authentication attempts while the key is pending.
    acceptance_wait_time: Number = Number::of(10),
    /// The number of seconds up to which the pause between two attempts grows; 0 for a constant pause of
    /// `acceptance_wait_time`.
    acceptance_wait_time_max: Number = Number::of(0),
    /// Whether the minion keeps asking after its key was rejected.
    rejected_retry: bool = false,
    /// The number of seconds after which an authentication without reply fails.
    auth_timeout: Number = Number::of(5),
    /// The number of seconds after which a request without reply fails.
    request_timeout: Number = Number::of(60),
    /// The number of seconds after which an attempt to send a return or an event fails, which is repeated until it succeeds;
    /// by default `request_timeout`.
    return_retry_timer: Option<Number> = None,
    /// The maximum of `return_retry_timer`: each attempt has a random time between both.
    return_retry_timer_max: Option<Number> = None,
    /// The minimum number of milliseconds before the minion reconnects.
    recon_default: Number = Number::of(1000),
    /// The maximum number of milliseconds before the minion reconnects.
    recon_max: Number = Number::of(10_000),
    /// The number of seconds between two tries while the name of no master resolves; 0 for pauses of `recon_default` up to
    /// `recon_max`. The minion never ends because of it.
    retry_dns: Number = Number::of(0),
    /// The maximum number of seconds that the daemon waits before it connects for the first time; the time is random, so
    /// that hosts that boot at the same moment do not come at once.
    random_startup_delay: Number = Number::of(0),
    /// The session ciphers that the minion allows, preferred first: `aes-256-gcm` (Brine) and `aes-192-cbc-hmac`
    /// (Salt).
    ciphers: Vec<String> = vec!["aes-256-gcm".into(), "aes-192-cbc-hmac".into()],
    /// The padding of encrypted keys in the authentication: OAEP-SHA1 or OAEP-SHA224.
    encryption_algorithm: String = "OAEP-SHA1".into(),
    /// The algorithm of signatures: PKCS1v15-SHA1 or PKCS1v15-SHA224.
    signing_algorithm: String = "PKCS1v15-SHA1".into(),
    /// Whether publishes with Salt's cipher must be signed. Publishes with AES-256-GCM always must.
    sign_pub_messages: bool = false,
    /// Whether messages to the master are signed with the minion's key, for the master's
    /// `require_minion_sign_messages`.
    minion_sign_messages: bool = false,
    /// Whether the minion subscribes only to publishes for itself and for all minions. With a Salt master, its option
    /// of the same name must be set, too; otherwise the minion receives nothing.
    zmq_filtering: bool = false,
    /// The maximum number of concurrent jobs; -1 for Brine's own limit of 256. Further jobs wait.
    process_count_max: i64 = -1,
    /// The number of seconds for which a minion that is stopped (SIGTERM) waits for its running jobs and their returns:
    /// one of them may be what upgrades or restarts it. A second signal, SIGINT, or the end of this time end the jobs.
    job_stop_timeout: Number = Number::of(900),
    /// The maximum number of bytes kept of each output stream of a command (`cmd.run` and others); the rest is dropped
    /// with a note at the end. Both streams must fit into `max_message_size`.
    cmd_output_limit: usize = 16 << 20,
    /// The commands that the functions of `cmd` refuse if a job calls them itself: globs of whole command lines. They may
    /// also be in grains or pillar. Commands of states, templates and other functions are not checked.
    cmd_blacklist_glob: Vec<String> = Vec::new(),
    /// The only commands that these functions permit; none for all.
    cmd_whitelist_glob: Vec<String> = Vec::new(),
    /// Whether commands of templates and of other functions have no shell unless `python_shell=True` is passed.
    cmd_safe: bool = true,
    /// The maximum size of all files of an archive that `archive.extracted` or a function of `archive` extracts, in bytes.
    archive_max_size: u64 = 64 << 30,
    /// The maximum number of files, directories and links of an archive that `archive.extracted` or a function of
    /// `archive` extracts.
    archive_max_entries: usize = 1_000_000,
    /// The age in seconds up to which jobs published while the minion was disconnected are fetched when it reconnects;
    /// 0 for never. Brine masters only.
    publish_catch_up: u64 = 60,
    /// The number of seconds within which a publish that has begun to arrive must be complete. Otherwise the minion
    /// reconnects, and fetches the jobs that it has missed. A slow link with large jobs needs more.
    message_timeout: u64 = 10,
    /// The maximum number of returns kept for a master that does not accept them, and for each returner whose server does
    /// not answer; the oldest are dropped.
    return_queue_count: usize = 1000,
    /// The maximum size of the kept returns, in bytes.
    return_queue_bytes: usize = 256 << 20,

    /// The execution modules that are not there: names of modules, or of Salt's files of them, such as `cmdmod`. Neither
    /// are the state modules of these names.
    disable_modules: Vec<String> = Vec::new(),
    /// The only execution modules that jobs and states may call; none for all. Custom modules among them may call all.
    whitelist_modules: Vec<String> = Vec::new(),
    /// The state modules that are not there.
    disable_states: Vec<String> = Vec::new(),
    /// The only state modules that are there; none for all.
    whitelist_state_modules: Vec<String> = Vec::new(),
    /// Directories of custom state modules.
    states_dirs: Vec<String> = Vec::new(),
    /// What calls the function of a job: the names of executors, in turn until one returns a value; a string or a list.
    module_executors: Value = Value::Nil,
    /// Whether the minion gives up what jobs seldom need: capabilities to change mounts, networks, modules and clocks, and
    /// set-user-ID programs such as `sudo`, also for the programs of jobs; docs/security.md lists it.
    sandbox: bool = false,
    /// The user as which the functions of published jobs are called, by `sudo` and `salt-call`, for a minion that runs as
    /// another user; `''` for the minion's own.
    sudo_user: String = String::new(),
    /// Directories of custom grains modules.
    grains_dirs: Vec<String> = Vec::new(),
    /// Whether SLS files that `master_tops` assign come before those of the top file.
    master_tops_first: bool = false,
    /// Whether a highstate begins with a sync of custom modules from the master.
    autoload_dynamic_modules: bool = true,
    /// Whether a sync removes modules that the master no longer has.
    clean_dynamic_modules: bool = true,

    /// Static grains.
    grains: Map = Map::new(),
    /// The grains of the host that are left out: names, globs, or regular expressions.
    grains_blacklist: Vec<String> = Vec::new(),
    /// Whether mappings in the grains of custom modules, and in the file `grains` of the configuration directory, are
    /// merged into those of the same name instead of replacing them.
    grains_deep_merge: bool = false,
    /// The number of minutes between two collections of the grains; 0 for none. If they changed, the pillar is refreshed.
    grains_refresh_every: u64 = 0,
    /// The grains that are sent with the authentication request, for the master's `autosign_grains_dir`.
    autosign_grains: Vec<String> = Vec::new(),
    /// The states that run when the minion starts: highstate, sls or top.
    startup_states: Option<String> = None,
    /// The SLS files for `startup_states: sls`.
    sls_list: Vec<String> = Vec::new(),
    /// The top file for `startup_states: top`.
    top_file: String = String::new(),
    /// The conditions under which states run: compound targets, one or a list, by module (`pkg`), function
    /// (`pkg.installed`) or `*` for all. A state runs if any target of its entries matches this minion.
    global_state_conditions: Map = Map::new(),
    /// `remote` reads files and pillar from the master, `local` from this host.
    file_client: String = "remote".into(),
    /// Whether a minion with `file_client: local` has the pillar of the master, and sends it the events of `event.send`.
    use_master_when_local: bool = false,
    /// The file with the certificate authorities that `https://` trusts; by default the system's.
    ca_bundle: Option<PathBuf> = None,
    /// Which replaced files `file.managed` and its like keep in `file_backup` of the cache directory, unless a state says
    /// it: `minion` for all, `''` for none.
    backup_mode: String = String::new(),
    /// The host of the proxy to web servers, with `proxy_port`; by default the proxy of the environment (`http_proxy`,
    /// `https_proxy`, `no_proxy`). It must permit `CONNECT`, also to the ports of `http://`.
    proxy_host: String = String::new(),
    /// The port of the proxy.
    proxy_port: u16 = 0,
    /// The user name at the proxy.
    proxy_username: String = String::new(),
    /// The password at the proxy.
    proxy_password: String = String::new(),
    /// The hosts that are reached without the proxy.
    no_proxy: Vec<String> = Vec::new(),
    /// Whether a state run may not have another environment than `saltenv`.
    lock_saltenv: bool = false,
    /// The default environment of states.
    saltenv: Option<String> = None,
    /// The default environment of pillar.
    pillarenv: Option<String> = None,
    /// The options of this minion that it sends with its requests for the pillar, for modules of `ext_pillar` that take
    /// them: names, or paths such as `site:rack`.
    pass_to_ext_pillars: Vec<String> = Vec::new(),
    /// The state modules whose states are aggregated; `True` for all.
    state_aggregate: Value = Value::Bool(false),
    /// The maximum number of concurrent states with `parallel: True`; 0 for no limit.
    state_max_parallel: usize = 0,
    /// Whether states only report the changes that they would make.
    test: bool = false,
    /// Whether a state run stops at the first failed state.
    failhard: bool = false,
    /// Whether every state run publishes an event for each finished state.
    state_events: bool = false,
    /// The handling of arguments that a state function accepts, but does not know, such as `contens`: `warn` in the
    /// result of the state and in the log; `fail` the state, which is recommended; or `ignore` them, as Salt does.
    state_unknown_arguments: UnknownArguments = UnknownArguments::default(),
    /// Whether `minion_start` is published in addition to `salt/minion/<id>/start`.
    enable_legacy_startup_events: bool = true,
    /// The grains that the start events include.
    start_event_grains: Vec<String> = Vec::new(),
    /// The beacons by name, each a list of one-key mappings or one mapping of its options.
    beacons: Map = Map::new(),
    /// Scheduled functions, by name of the job.
    schedule: Map = Map::new(),
    /// Whether scheduled jobs run before the minion has connected to a master.
    scheduler_before_connect: bool = false,
    /// Whether beacons run before the minion has connected to a master; their events then stay on the minion's own
    /// bus.
    beacons_before_connect: bool = false,
    /// The number of seconds between two polls of beacons without an `interval`.
    loop_interval: Number = Number::of(1),
    /// Whether `pillar.get` of a missing path without a default is an error, also in SLS files, instead of an empty string.
    pillar_raise_on_missing: bool = false,
    /// Whether the minion sends its mine (`mine_functions`) at start and every `mine_interval` minutes.
    mine_enabled: bool = true,
    /// The number of minutes between two updates of the mine; at least 1.
    mine_interval: Number = Number::of(60),
    /// Whether automatic updates of the mine are stored in the master's job cache.
    mine_return_job: bool = false,
    /// The number of minutes between two pings of the master; 0 for none.
    ping_interval: f64 = 0.0,
    /// The number of job ids that are remembered so that a job received twice runs once; at least 10,000.
    minion_jid_queue_hwm: usize = 100,
    /// The entries of the minion's own reactor, in the form of the master's `reactor`.
    reactor: Value = Value::List(Vec::new()),
    /// The number of seconds that the reactions of the minion's own reactor to one event may take before they are
    /// cancelled.
    reactor_deadline: u64 = 3600,

    /// The file with the public key in PEM that must have signed a new program of the minion (`brine.upgrade`); by default
    /// the master's word is enough.
    upgrade_pubkey: Option<PathBuf> = None,
    /// The number of seconds within which a new program of the minion (`brine.upgrade`) must connect to a master and show
    /// that it works; otherwise the old one comes back.
    upgrade_health_timeout: Number = Number::of(60),

    /// The default outputter of `salt-call`.
    output: Option<String> = None,
}

impl MinionConfig {
    fn finish_paths(&mut self) {
        self.split_port();
        let root = self.root_dir.clone();
        for path in [&mut self.pki_dir, &mut self.cachedir, &mut self.sock_dir, &mut self.pidfile]
            .into_iter()
            .chain(&mut self.extension_modules)
        {
            *path = below_root(&root, path);
        }
        self.log_file = log_below_root(&root, &self.log_file);
    }

    /// With `pillarenv_from_saltenv`, the environment of the pillar is that of the states, also outside of state runs.
    fn finish_opts(&mut self) {
        if self.pillarenv.is_none() && self.follows_saltenv() {
            self.pillarenv = self.saltenv.clone();
            self.opts.insert("pillarenv".into(), self.pillarenv.clone().into());
        }
    }

    fn follows_saltenv(&self) -> bool {
        crate::opts::modules::pillarenv_from_saltenv(&self.opts)
    }

    /// Returns the environment of the pillar for a call with these arguments.
    pub fn pillarenv_of(&self, saltenv: Option<&str>, pillarenv: Option<&str>) -> Option<String> {
        let environment = pillarenv.or(saltenv.filter(|_| self.follows_saltenv()));
        environment.map(str::to_owned).or_else(|| self.pillarenv.clone())
    }

    /// Whether the minion is connected to several masters at once: `master` is a list, and `master_type` is neither
    /// `failover` nor `distributed`.
    pub fn is_multi_master(&self) -> bool {
        self.master.len() > 1 && !matches!(self.master_type.as_str(), "failover" | "distributed")
    }

    /// Whether the minion connects to no master (`master_type: disable`).
    pub fn is_masterless(&self) -> bool {
        self.master_type == "disable"
    }

    /// Whether the minion uses local files and a local pillar: with `file_client: local`, or without a master.
    pub fn is_local(&self) -> bool {
        self.file_client == "local" || self.is_masterless()
    }

    /// Whether the minion renders its own pillar: with local files, unless `use_master_when_local` is set.
    pub fn has_local_pillar(&self) -> bool {
        self.is_local() && (self.is_masterless() || !self.use_master_when_local)
    }

    /// Sets the id, and appends it to the paths that `append_minionid_config_dirs` names. To be called once.
    pub fn set_id(&mut self, id: &str) {
        self.id = Some(id.to_owned());
        self.opts.insert("id".into(), id.into());
        let modules = self.extension_modules.clone().unwrap_or_else(|| self.cachedir.join("extmods"));
        for name in self.append_minionid_config_dirs.clone() {
            let path = match name.as_str() {
                "pki_dir" => &mut self.pki_dir,
                "cachedir" => &mut self.cachedir,
                "extension_modules" => self.extension_modules.get_or_insert_with(|| modules.clone()),
                "pidfile" => &mut self.pidfile,
                _ => continue,
            };
            *path = match (name.as_str(), path.parent(), path.file_name()) {
                // As in Salt.
                ("pidfile", Some(directory), Some(file)) => directory.join("salt").join(id).join(file),
                _ => path.join(id),
            };
            let value = Value::from(path.clone());
            self.opts.insert(name.into(), value);
        }
    }

    /// Sets `file_client: local`.
    pub fn make_local(&mut self) {
        "local".clone_into(&mut self.file_client);
        self.opts.insert("file_client".into(), "local".into());
    }

    /// Sets the masters, each with or without port.
    pub fn set_masters(&mut self, masters: Vec<String>) {
        let value = match &masters[..] {
            [one] => Value::from(one.as_str()),
            several => several.iter().map(String::as_str).collect(),
        };
        self.opts.insert("master".into(), value);
        self.master = masters;
        self.split_port();
    }

    /// Returns the configuration for the session with this master, if there are several.
    #[must_use]
    pub fn for_master(&self, host: &str, port: u16) -> Self {
        let mut config = self.clone();
        config.master = vec![host.to_owned()];
        config.master_port = port;
        config.opts.insert("master".into(), host.into());
        config.opts.insert("master_port".into(), port.into());
        config
    }

    /// Splits the port from the first master's `host:port`, and makes it the value of `master_port`.
    fn split_port(&mut self) {
        let default = self.master_port;
        let Some((first, others)) = self.master.split_first_mut() else { return };
        let (host, port) = address(first, default);
        // The other masters without a port keep the previous default.
        if port != default {
            for other in others {
                let (host, port) = address(other, default);
                *other = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
            }
        }
        (*first, self.master_port) = (host, port);
    }

    /// Returns the hosts and ports of all masters.
    pub fn masters(&self) -> Vec<(String, u16)> {
        self.master.iter().map(|written| address(written, self.master_port)).collect()
    }
}

/// Splits an address into host and port; `default` is the port of an address without one.
fn address(written: &str, default: u16) -> (String, u16) {
    let with_port = written.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    // An IPv6 address without brackets has no port.
    let with_port = with_port.filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let (host, port) = with_port.unwrap_or((written, default));
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (bare.to_owned(), port)
}

#[cfg(test)]
mod tests;
