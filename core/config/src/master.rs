//! The options of the master.

use std::path::PathBuf;

use brine_value::{Map, Value};

use super::Roots;
use super::options::{below_root, log_below_root};
use super::rendering::rendering_options;

rendering_options! {
    /// The master's configuration, as `/etc/salt/master` and `master.d/*.conf` say it.
    MasterConfig for "master";

    /// The folder that all other folders are below.
    root_dir: PathBuf = "/".into(),
    /// The address to listen on.
    interface: String = "0.0.0.0".into(),
    /// The port that publishes go out on.
    publish_port: u16 = 4505,
    /// The port that requests come in on.
    ret_port: u16 = 4506,
    /// The master's own id; default: the host's name with `_master` behind it.
    id: Option<String> = None,
    /// The user to run as: root, and nobody else, can start the daemon to run as another user.
    user: Option<String> = None,
    /// Where keys are kept.
    pki_dir: PathBuf = "/etc/salt/pki/master".into(),
    /// Where the store (journal, job cache, minion data) and the root key are kept.
    cachedir: PathBuf = "/var/cache/salt/master".into(),
    /// Where the event bus has its sockets.
    sock_dir: PathBuf = "/var/run/salt/master".into(),
    /// The file that holds the daemon's process number.
    pidfile: PathBuf = "/var/run/salt-master.pid".into(),
    /// The log file of the daemon, and of the tools where it can be written; `''` for none.
    log_file: PathBuf = "/var/log/salt/master".into(),
    /// The log file of `salt-key`.
    key_logfile: PathBuf = "/var/log/salt/key".into(),
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

    /// How many requests are handled at the same time.
    worker_threads: usize = 5,
    /// Seconds that `salt` waits before it asks who is still working.
    timeout: u64 = 5,
    /// Seconds that minions have to say whether a job still runs.
    gather_job_timeout: u64 = 10,
    /// The largest message that is taken from the network, in bytes.
    max_message_size: usize = 64 << 20,
    /// The number of network connections; 0 for three quarters of the limit on open files. Half of them are kept for
    /// addresses from which a minion or a client has authenticated.
    max_connections: usize = 0,
    /// The number of network connections from one address; 0 for a quarter of `max_connections`, or for seven eighths
    /// where a minion or a client has authenticated.
    max_connections_per_address: usize = 0,
    /// The largest message in bytes that is taken from an address from which nobody has authenticated.
    unauthenticated_message_size: usize = 64 << 10,
    /// How many bytes of messages all unauthenticated connections may have under way.
    unauthenticated_memory: usize = 64 << 20,
    /// Seconds that a peer may take for a message that it has begun, and for reading a reply.
    message_timeout: u64 = 60,
    /// The largest event that is taken, in bytes. The event of a larger return is trimmed; the job cache has it whole.
    max_event_size: usize = 1 << 20,
    /// How many MiB of returns larger than `max_event_size` the job cache keeps whole, a quarter of it for one minion. What
    /// exceeds this is kept trimmed, as its event.
    large_returns_size: u64 = 1024,

    /// How many hours jobs are kept in the job cache.
    keep_jobs: u64 = 24,
    /// How many seconds jobs are kept; counts before `keep_jobs`.
    keep_jobs_seconds: Option<u64> = None,
    /// Whether jobs are kept at all.
    job_cache: bool = true,
    /// Whether calls of runner functions are kept as jobs.
    runner_returns: bool = true,
    /// The returner that keeps jobs.
    master_job_cache: String = "local_cache".into(),
    /// Returners that every event is handed to.
    event_return: Vec<String> = Vec::new(),
    /// Only events whose tags match one of these globs are handed to `event_return`.
    event_return_whitelist: Vec<String> = Vec::new(),
    /// Events whose tags match one of these globs are not handed to `event_return`.
    event_return_blacklist: Vec<String> = Vec::new(),
    /// Runner functions that the master runs by itself, by name.
    schedule: Map = Map::new(),
    /// Seconds between two runs of the maintenance task.
    loop_interval: u64 = 60,
    /// Hours that events stay in the journal.
    event_journal_hours: u64 = 24,
    /// How many MiB the journal's events may take on disk before the oldest ones leave; their disk use stays below 1.3
    /// times this. Events that a durable subscriber (the reactor, the job cache, event returners) has not handled stay
    /// until there is twice as much.
    event_journal_size: u64 = 1024,

    /// The port that metrics are served on, as Prometheus text at `/metrics`; 0 for none.
    metrics_port: u16 = 0,
    /// The address that metrics are served on.
    metrics_interface: String = "127.0.0.1".into(),

    /// Bits of the keys that are made.
    keysize: usize = 2048,
    /// The passphrase of the master's key, if it has one.
    key_pass: Option<String> = None,
    /// Whether minions are shown a signature of the master's public key (their `verify_master_pubkey_sign`).
    master_sign_pubkey: bool = false,
    /// The name of the key pair below `pki_dir` that makes this signature.
    master_sign_key_name: String = "master_sign".into(),
    /// The passphrase of that key, if it has one.
    signing_key_pass: Option<String> = None,
    /// Whether the signature is not made but read from a file below `pki_dir`.
    master_use_pubkey_signature: bool = false,
    /// The name of that file; default: `master_pubkey_signature`, as up to Salt 3007, or `<id>_pubkey_signature`.
    master_pubkey_signature: Option<String> = None,
    /// Accept every key. Not for anything that matters.
    auto_accept: bool = false,
    /// Accept every key and also changed ones: no authentication at all.
    open_mode: bool = false,
    /// A file of ids, globs and regular expressions, one a line, whose keys are accepted.
    autosign_file: Option<PathBuf> = None,
    /// A file of ids, globs and regular expressions, one a line, whose keys are rejected.
    autoreject_file: Option<PathBuf> = None,
    /// Minutes after which a file in `minions_autosign` below `pki_dir` no longer lets its minion in; 0 for never.
    autosign_timeout: u64 = 120,
    /// A folder with one file a grain: a minion that sends one of the values in it is accepted.
    autosign_grains_dir: Option<PathBuf> = None,
    /// Whether `autosign_file` and the like may be writable for their group.
    permissive_pki_access: bool = false,
    /// How many accepted minions there may be; 0 for no limit.
    max_minions: usize = 0,
    /// How many keys may wait for a decision; further minions are asked to come back later. 0 for no limit.
    max_pending_keys: usize = 20_000,
    /// How many authentications a second one address may send in the long run; ten times as many at once. Further ones
    /// wait, then are dropped. 0 for no limit.
    auth_rate_limit: u32 = 1000,
    /// How many runner and wheel functions may run at a time; further ones wait.
    runner_threads: usize = 256,
    /// For how many seconds a job that was published while a Brine minion was reconnecting is handed to it afterwards;
    /// 0 turns this off.
    publish_catch_up: u64 = 60,
    /// Seconds after which the session keys are replaced.
    publish_session: u64 = 86_400,
    /// Whether the session keys are replaced when a key is deleted or rejected.
    rotate_aes_key: bool = true,
    /// The oldest protocol version that is spoken with.
    minimum_auth_version: i64 = 3,
    /// The session ciphers that minions may choose: `aes-256-gcm` (Brine) and `aes-192-cbc-hmac` (Salt).
    ciphers: Vec<String> = vec!["aes-256-gcm".into(), "aes-192-cbc-hmac".into()],
    /// Whether publishes are signed with Salt's cipher, too; with AES-256-GCM they always are.
    sign_pub_messages: bool = true,
    /// Whether returns of minions that do not sign them (their `minion_sign_messages`) are refused.
    require_minion_sign_messages: bool = false,
    /// Whether returns whose signature is not that of their minion's key are refused, and not only logged.
    drop_messages_signature_fail: bool = false,
    /// Whether a job goes only to the minions of its target where minions filter publishes too (their `zmq_filtering`).
    /// Minions that do not filter get every job in any case.
    zmq_filtering: bool = false,
    /// Seconds after which a minion's request counts as replayed; 0 for never.
    request_server_ttl: u64 = 0,
    /// Which functions minions may have run by others: regular expressions of minions, each with a list of
    /// regular expressions of functions.
    peer: Map = Map::new(),
    /// Which runner functions minions may call, in the form of `peer`.
    peer_run: Map = Map::new(),
    /// Which functions minions may ask the mine for, in the form of `peer`; not given: all.
    mine_get: Option<Map> = None,
    /// Whether a minion may have its own key forgotten.
    allow_minion_key_revoke: bool = true,
    /// Whether there are masters below this one that bring the returns of their minions.
    order_masters: bool = false,
    /// Whether minions may give the master files to keep (`cp.push`).
    file_recv: bool = false,
    /// The largest such file, in MiB.
    file_recv_max_size: u64 = 100,
    /// Groups of minions by name, each a compound target.
    nodegroups: Map = Map::new(),

    /// Seconds between two fetches of the repositories in `gitfs_remotes`.
    gitfs_update_interval: u64 = 60,
    /// The name of the top file.
    state_top: String = "top.sls".into(),
    /// The environment whose top file alone counts.
    state_top_saltenv: Option<String> = None,
    /// How the top files of several environments become one: merge, same, merge_all.
    top_file_merging_strategy: String = "merge".into(),
    /// The order in which environments are looked at.
    env_order: Vec<String> = Vec::new(),
    /// The environment whose top file counts for all with `top_file_merging_strategy: same`.
    default_top: String = "base".into(),
    /// Whether minions stop at the first state that fails.
    failhard: bool = false,
    /// Whether states run in the order in which they are written.
    state_auto_order: bool = true,
    /// Whether minions tell of each state as it is done.
    state_events: bool = false,
    /// Which states minions put together before they run; `True` for all that can be.
    state_aggregate: Value = Value::Bool(false),
    /// Options of the Jinja environment of templates.
    jinja_env: Map = Map::new(),
    /// Options of the Jinja environment of SLS files.
    jinja_sls_env: Map = Map::new(),
    /// Whether blanks in front of Jinja blocks go.
    jinja_lstrip_blocks: bool = false,
    /// Whether the line break behind a Jinja block goes.
    jinja_trim_blocks: bool = false,
    /// Whether rendered pillars are kept in memory, by minion.
    pillar_cache: bool = false,
    /// For how many seconds.
    pillar_cache_ttl: u64 = 3600,

    /// Which reactor SLS files belong to which event tags: a list of one-key maps.
    reactor: Value = Value::List(Vec::new()),
    /// Files of rules over time: paths, globs of paths, `salt://` paths.
    reactor_rules: Vec<String> = Vec::new(),
    /// How many events are reacted to side by side.
    reactor_worker_threads: usize = 10,
    /// How many events wait for that in memory; more of them wait in the journal.
    reactor_worker_hwm: usize = 10_000,
    /// How many seconds the reactions to one event may take, with the functions that they call. Then they are cancelled
    /// and kept as dead letters (`reactor.failed`).
    reactor_deadline: u64 = 3600,
    /// How often a reaction is tried again whose failure may pass.
    reactor_retries: u32 = 5,
    /// How many reactions may lead from one to the next before they count as a loop.
    reactor_max_depth: u64 = 16,
    /// Whether reactions refuse text from events that would change the structure of a rendered reactor SLS, or match
    /// more minions or keys than itself; without it such text is read as Salt reads it.
    reactor_strict_data: bool = true,
    /// How often an entry may react, by its pattern: `10/1m`, or `{rate: 10/1m, by: id}`.
    reactor_rate_limit: Map = Map::new(),
    /// For how long an entry passes over events after a reaction, by its pattern: `60`, or `{within: 60, by: id}`.
    reactor_cooldown: Map = Map::new(),
    /// For how long there must be quiet before an entry reacts, once, to the last event, by its pattern.
    reactor_debounce: Map = Map::new(),

    /// Systems that authenticate users, each with the entries of its users.
    external_auth: Map = Map::new(),
    /// Users of this machine who may publish jobs, each with entries.
    publisher_acl: Map = Map::new(),
    /// Users who may publish nothing (`users`), and functions that nobody may call (`modules`).
    publisher_acl_blacklist: Map = Map::new(),
    /// Whether the entries of `*` hold for users who have entries of their own, too.
    permissive_acl: bool = false,
    /// Whether the entries of a user at login hold as long as the token, whatever the configuration says later.
    keep_acl_in_token: bool = false,
    /// For how many seconds tokens of users are valid.
    token_expire: u64 = 43_200,
    /// Who may choose how long a token is valid: everybody (`True`), or lists of users by system.
    token_expire_user_override: Value = Value::Bool(false),
    /// The file in which `salt -T` keeps a user's token; by default `salt_token` in the user's configuration of Salt, or
    /// `.salt_token` in the home directory.
    token_file: Option<String> = None,
    /// The password of all users of the system `sharedsecret` of `external_auth`.
    sharedsecret: Option<String> = None,

    /// Whether `salt/auth` events are fired.
    auth_events: bool = true,
    /// The acts (`pend`, `denied`, ...) whose `salt/auth` events also tell the grains to sign by.
    auth_events_autosign_grains: Vec<String> = Vec::new(),
    /// Whether `salt/stats` events tell how long requests take.
    master_stats: bool = false,
    /// Seconds between two of them.
    master_stats_event_iter: u64 = 60,
    /// Whether a new job is also told under its bare id, as Salt did up to 3007.
    bare_jid_events: bool = false,
    /// Whether `minion/refresh` events are fired.
    minion_data_cache_events: bool = true,
    /// Whether `salt/fileserver/roots/update` events are fired.
    fileserver_events: bool = false,
    /// Seconds between two looks at the files in `file_roots`, for `fileserver_events`.
    roots_update_interval: u64 = 60,
    /// Whether `salt/presence` events are fired.
    presence_events: bool = false,
    /// The outputter of `salt` when nothing else says.
    output: Option<String> = None,
    /// Whether there is colour on terminals.
    color: bool = true,
    /// Which states the highstate outputter shows at length.
    state_output: String = "full".into(),
    /// Whether the highstate outputter shows states that changed nothing.
    state_verbose: bool = true,
}

impl MasterConfig {
    fn finish_paths(&mut self) {
        let root = self.root_dir.clone();
        for path in [&mut self.pki_dir, &mut self.cachedir, &mut self.sock_dir, &mut self.pidfile] {
            *path = below_root(&root, path);
        }
        for path in [&mut self.log_file, &mut self.key_logfile] {
            *path = log_below_root(&root, path);
        }
        for path in
            [&mut self.autosign_file, &mut self.autoreject_file, &mut self.autosign_grains_dir].into_iter().flatten()
        {
            *path = below_root(&root, path);
        }
    }

    /// How long jobs are kept.
    pub fn job_lifetime(&self) -> std::time::Duration {
        std::time::Duration::from_secs(self.keep_jobs_seconds.unwrap_or(self.keep_jobs * 3600))
    }
}
