//! The options of the minion.

use std::path::PathBuf;

use brine_value::{Map, Value};

use super::Roots;
use super::options::{below_root, log_below_root};
use super::rendering::rendering_options;

rendering_options! {
    /// The minion's configuration, as `/etc/salt/minion` and `minion.d/*.conf` say it.
    MinionConfig for "minion";

    /// The folder that all other folders are below.
    root_dir: PathBuf = "/".into(),
    /// The minion's id; default: `minion_id` in the configuration folder, else the host's name.
    id: Option<String> = None,
    /// The master's address, or several of which the first that answers is taken.
    master: Vec<String> = vec!["salt".into()],
    /// The master's port for requests.
    master_port: u16 = 4506,
    /// The master's port for publishes; default: what the master says when it accepts the minion.
    publish_port: Option<u16> = None,
    /// The fingerprint that the master's key must have at the first contact.
    master_finger: Option<String> = None,
    /// Whether the master's key must be signed by the key `master_sign_key_name`; one that is signed so takes the place
    /// of another.
    verify_master_pubkey_sign: bool = false,
    /// Whether the signature is also looked at when the master's key is the known one.
    always_verify_signature: bool = false,
    /// The name of the public key below `pki_dir` that verifies the master's.
    master_sign_key_name: String = "master_sign".into(),
    /// The user to run as: root, and nobody else, can start the daemon to run as another user.
    user: Option<String> = None,
    /// Where keys are kept.
    pki_dir: PathBuf = "/etc/salt/pki/minion".into(),
    /// Where files from the master, jobs and grains are cached.
    cachedir: PathBuf = "/var/cache/salt/minion".into(),
    /// Where the minion's event bus has its sockets.
    sock_dir: PathBuf = "/var/run/salt/minion".into(),
    /// The file that holds the daemon's process number.
    pidfile: PathBuf = "/var/run/salt-minion.pid".into(),
    /// The log file of the daemon, and of the tools where it can be written; `''` for none.
    log_file: PathBuf = "/var/log/salt/minion".into(),
    /// What is logged to the terminal: garbage, trace, debug, info, warning, error, critical, quiet.
    log_level: String = "warning".into(),
    /// What is logged to the file; default: as `log_level`.
    log_level_logfile: Option<String> = None,
    /// The shape of log lines on stderr, with Python's `%(name)s` attributes; default: Salt's, for daemons with the time.
    log_fmt_console: Option<String> = None,
    /// The shape of log lines in the file; default: Salt's.
    log_fmt_logfile: Option<String> = None,
    /// The shape of `%(asctime)s` on stderr, for strftime.
    log_datefmt: Option<String> = None,
    /// The same; counts before `log_datefmt`.
    log_datefmt_console: Option<String> = None,
    /// The shape of `%(asctime)s` in the file.
    log_datefmt_logfile: Option<String> = None,

    /// Seconds between two looks whether the master has accepted the key.
    acceptance_wait_time: u64 = 10,
    /// The most seconds between two looks; 0 for always `acceptance_wait_time`.
    acceptance_wait_time_max: u64 = 0,
    /// Whether the minion goes on asking when its key is rejected.
    rejected_retry: bool = false,
    /// Seconds until an authentication without an answer is given up.
    auth_timeout: u64 = 5,
    /// Seconds until a request without an answer is given up.
    request_timeout: u64 = 60,
    /// The shortest time in milliseconds before the minion connects again.
    recon_default: u64 = 1000,
    /// The longest time in milliseconds before the minion connects again.
    recon_max: u64 = 10_000,
    /// Bits of the key that is made.
    keysize: usize = 2048,
    /// The session ciphers that the minion allows, best first: `aes-256-gcm` (Brine) and `aes-192-cbc-hmac` (Salt).
    ciphers: Vec<String> = vec!["aes-256-gcm".into(), "aes-192-cbc-hmac".into()],
    /// How keys are sealed in the authentication: OAEP-SHA1 or OAEP-SHA224.
    encryption_algorithm: String = "OAEP-SHA1".into(),
    /// How messages are signed: PKCS1v15-SHA1 or PKCS1v15-SHA224.
    signing_algorithm: String = "PKCS1v15-SHA1".into(),
    /// Whether publishes must be signed with Salt's cipher, too; with AES-256-GCM they always must.
    sign_pub_messages: bool = false,
    /// Whether messages to the master are signed with the minion's key, for its `require_minion_sign_messages`.
    minion_sign_messages: bool = false,
    /// Whether only publishes for this minion or for all are received, and not those for others. A Salt master needs the
    /// option too, and its minion then receives nothing without it.
    zmq_filtering: bool = false,
    /// The largest message that is taken from the network, in bytes.
    max_message_size: usize = 64 << 20,
    /// The maximum number of jobs that run at the same time; -1 for Brine's own limit of 256. Further jobs wait.
    process_count_max: i64 = -1,
    /// The maximum number of bytes that are kept of each output of a command (`cmd.run` and others); the rest is dropped
    /// with a note at the end. Both outputs of a command must fit into `max_message_size`.
    cmd_output_limit: usize = 16 << 20,
    /// The maximum number of seconds for which jobs that were published while the minion was disconnected are fetched
    /// when it connects again; 0 for never. Brine masters only.
    publish_catch_up: u64 = 60,
    /// The maximum number of returns that are kept for a master that does not accept them; the oldest are dropped.
    return_queue_count: usize = 1000,
    /// The maximum size of those returns, in bytes.
    return_queue_bytes: usize = 256 << 20,

    /// Grains that are set by hand.
    grains: Map = Map::new(),
    /// Grains that are sent along when the minion authenticates.
    autosign_grains: Vec<String> = Vec::new(),
    /// What states run when the minion starts: highstate, sls or top.
    startup_states: Option<String> = None,
    /// The SLS files for `startup_states: sls`.
    sls_list: Vec<String> = Vec::new(),
    /// `remote`: files and pillar from the master; `local`: from this host.
    file_client: String = "remote".into(),
    /// The file with the certificate authorities that `https://` trusts; default: those of the host.
    ca_bundle: Option<PathBuf> = None,
    /// The environment of states when nothing else says.
    saltenv: Option<String> = None,
    /// The environment of pillar when nothing else says.
    pillarenv: Option<String> = None,
    /// The name of the top file.
    state_top: String = "top.sls".into(),
    /// Which modules' states are put together before they run; `True` for all that can be.
    state_aggregate: Value = Value::Bool(false),
    /// How many states with `parallel: True` run side by side; 0 for no limit.
    state_max_parallel: usize = 0,
    /// Whether states only say what they would do.
    test: bool = false,
    /// Whether the first failing state ends the run.
    failhard: bool = false,
    /// Whether an event tells the progress of every state run, state by state.
    state_events: bool = false,
    /// Whether `minion_start` is fired beside `salt/minion/<id>/start`.
    enable_legacy_startup_events: bool = true,
    /// The names of grains that the start events carry.
    start_event_grains: Vec<String> = Vec::new(),
    /// What is watched on this host, by name: as a list of mappings or as one mapping.
    beacons: Map = Map::new(),
    /// Jobs that the minion runs by itself, by name.
    schedule: Map = Map::new(),
    /// Whether the schedule runs before there is a master.
    scheduler_before_connect: bool = false,
    /// Whether beacons look before there is a master; what they see stays on the minion's own bus then.
    beacons_before_connect: bool = false,
    /// Seconds between two looks at what beacons watch, for those that do not say.
    loop_interval: u64 = 1,
    /// Whether the minion sends its mine (`mine_functions`) at start and every `mine_interval`.
    mine_enabled: bool = true,
    /// The number of minutes between two updates of the mine; at least 1.
    mine_interval: u64 = 60,
    /// Whether the updates of the mine that the minion makes by itself appear in the master's job cache.
    mine_return_job: bool = false,
    /// Minutes between two pings of the master; 0 for none.
    ping_interval: f64 = 0.0,
    /// Groups of minions by name, for targets that the minion evaluates without a master.
    nodegroups: Map = Map::new(),
    /// The number of job ids that are remembered, so that a job that is received twice is run once; at least 10,000 are.
    minion_jid_queue_hwm: usize = 100,
    /// What the minion's own reactor binds, as the master's `reactor`.
    reactor: Value = Value::List(Vec::new()),
    /// How many seconds the reactions of the minion's own reactor to one event may take before they are cancelled.
    reactor_deadline: u64 = 3600,
    /// Whether reactions refuse text from events that would change the structure of a rendered reactor SLS, or match
    /// more minions or keys than itself; without it such text is read as Salt reads it.
    reactor_strict_data: bool = true,

    /// The outputter of `salt-call` when nothing else says.
    output: Option<String> = None,
    /// Whether there is colour on terminals.
    color: bool = true,
    /// Which states the highstate outputter shows at length.
    state_output: String = "full".into(),
    /// Whether the highstate outputter shows states that changed nothing.
    state_verbose: bool = true,
}

impl MinionConfig {
    fn finish_paths(&mut self) {
        self.take_port();
        let root = self.root_dir.clone();
        for path in [&mut self.pki_dir, &mut self.cachedir, &mut self.sock_dir, &mut self.pidfile] {
            *path = below_root(&root, path);
        }
        self.log_file = log_below_root(&root, &self.log_file);
    }

    /// The master may be written with its port: `host:port`.
    fn take_port(&mut self) {
        let Some(master) = self.master.first_mut() else { return };
        let with_port = master.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        // A bare IPv6 address is full of colons.
        let with_port = with_port.filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
        let (host, port) = with_port.unwrap_or((master, self.master_port));
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        (*master, self.master_port) = (bare.to_owned(), port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_is_a_host_with_or_without_a_port() {
        for (written, host, port) in [
            ("salt", "salt", 4506),
            ("salt.example.com:4507", "salt.example.com", 4507),
            ("10.0.0.1:4507", "10.0.0.1", 4507),
            ("::1", "::1", 4506),
            ("[::1]", "::1", 4506),
            ("[::1]:4507", "::1", 4507),
            ("salt:http", "salt:http", 4506),
        ] {
            let mut config = MinionConfig { master: vec![written.to_owned()], ..Default::default() };
            config.take_port();
            assert_eq!((config.master[0].as_str(), config.master_port), (host, port), "{written}");
        }
    }
}
