//! The options of the master.

use std::path::PathBuf;
use std::time::Duration;

use brine_value::{Map, Value};

use super::options::{BadOption, below_root, checked, log_below_root};
use super::shared::shared_options;
use super::{Number, Roots, Transport};

shared_options! {
    /// The master's configuration, read from `/etc/salt/master` and `master.d/*.conf`.
    MasterConfig for "master";

    /// The address to listen on.
    interface: String = "0.0.0.0".into(),
    /// The TCP port on which jobs are published.
    publish_port: u16 = 4505,
    /// The TCP port on which requests of minions are received.
    ret_port: u16 = 4506,
    /// The size of the pieces in which `salt-cp --chunked` sends files, in bytes.
    salt_cp_chunk_size: usize = 98_304,
    /// The id of the master; by default the host name with `_master` appended.
    id: Option<String> = None,
    /// The domain that is added to the id, before `_master`, unless the id ends in it or in a dot.
    append_domain: String = String::new(),
    /// The directory of the master's key and the keys of minions.
    pki_dir: PathBuf = "/etc/salt/pki/master".into(),
    /// The directory of the store (`brine.redb`: journal, job cache, minion data) and of the root key.
    cachedir: PathBuf = "/var/cache/salt/master".into(),
    /// The directory of the event bus' sockets.
    sock_dir: PathBuf = "/var/run/salt/master".into(),
    /// The file that holds the PID of the daemon.
    pidfile: PathBuf = "/var/run/salt-master.pid".into(),
    /// The log file of the daemon, also used by its tools if they can write to it; `''` for none.
    log_file: PathBuf = "/var/log/salt/master".into(),
    /// The log file of `salt-key`.
    key_logfile: PathBuf = "/var/log/salt/key".into(),

    /// The number of requests that are handled concurrently.
    worker_threads: usize = 5,
    /// The number of seconds that `salt` waits for returns before it asks the silent minions whether the job still
    /// runs.
    timeout: Number = Number::of(5),
    /// The number of seconds that minions have to answer whether a job still runs.
    gather_job_timeout: Number = Number::of(10),
    /// The maximum number of network connections; 0 for three quarters of the limit on open files. Half of them are
    /// reserved for addresses from which a minion or a client has authenticated.
    max_connections: usize = 0,
    /// The maximum number of network connections of one address; 0 for a quarter of `max_connections`, or seven
    /// eighths if a minion or a client has authenticated from it.
    max_connections_per_address: usize = 0,
    /// The maximum size of a message from an address that has not authenticated, in bytes.
    unauthenticated_message_size: usize = 64 << 10,
    /// The maximum number of bytes of unfinished messages of all unauthenticated connections.
    unauthenticated_memory: usize = 64 << 20,
    /// The number of connections of each port that wait to be accepted; the system has a limit of its own, too.
    zmq_backlog: u32 = 1000,
    /// The number of seconds that a peer has to finish a message that it has begun, and to read a reply.
    message_timeout: u64 = 60,
    /// The maximum size of an event, in bytes. The event of a larger return is trimmed; the job cache keeps the return
    /// whole.
    max_event_size: usize = 1 << 20,
    /// The number of MiB of returns larger than `max_event_size` that the job cache keeps whole, a quarter of it per
    /// minion. Returns beyond that are trimmed there, too.
    large_returns_size: u64 = 1024,

    /// The number of hours for which jobs are kept in the job cache; 0 for ever.
    keep_jobs: Number = Number::of(24),
    /// The number of seconds for which jobs are kept; takes precedence over `keep_jobs`.
    keep_jobs_seconds: Option<Number> = None,
    /// Whether the returner `pgjsonb` moves old jobs and events to the tables `jids_archive`, `salt_returns_archive` and
    /// `salt_events_archive` instead of removing them.
    archive_jobs: bool = false,
    /// Whether jobs are stored.
    job_cache: bool = true,
    /// Whether `local_cache` stores the time of the last return of each job, which `salt-run jobs.*` show as `EndTime`.
    job_cache_store_endtime: bool = false,
    /// Whether calls of runner functions are stored as jobs.
    runner_returns: bool = true,
    /// The returner that stores jobs.
    master_job_cache: String = "local_cache".into(),
    /// The returner in which the master stores jobs, and in which minions store the returns of all jobs, in addition to
    /// `master_job_cache`; `salt-run jobs.*` read from it.
    ext_job_cache: Option<String> = None,
    /// The returners that store events.
    event_return: Vec<String> = Vec::new(),
    /// Globs of tags: only matching events are stored by `event_return`.
    event_return_whitelist: Vec<String> = Vec::new(),
    /// Globs of tags: matching events are not stored by `event_return`.
    event_return_blacklist: Vec<String> = Vec::new(),
    /// The number of events that are stored together; until then they wait in memory and in the journal. 0 stores each as
    /// soon as possible.
    event_return_queue: usize = 0,
    /// The number of seconds after which fewer events are stored, too; 0 for never.
    event_return_queue_max_seconds: u64 = 0,
    /// The module of `_cache` that gets copies of the minions' data and has that of `salt-run cache.store`; by default
    /// the master's store alone has both.
    cache: String = "localfs".into(),
    /// Scheduled runner functions, by name of the job.
    schedule: Map = Map::new(),
    /// The number of seconds between two runs of the maintenance task.
    loop_interval: Number = Number::of(60),
    /// The number of hours for which events stay in the journal.
    event_journal_hours: u64 = 24,
    /// The disk space of the journal's events in MiB. When it is exceeded, the oldest events are removed; disk use
    /// stays below 1.3 times this value. Events that a durable subscriber (the reactor, the job cache, event
    /// returners) has not handled are kept up to twice this value.
    event_journal_size: u64 = 1024,

    /// The TCP port on which metrics are served in Prometheus' text format at `/metrics`; 0 for none.
    metrics_port: u16 = 0,
    /// The address on which metrics are served.
    metrics_interface: String = "127.0.0.1".into(),

    /// The passphrase of the master's key.
    key_pass: Option<String> = None,
    /// Whether authentication replies carry a signature of the master's public key, for the minions'
    /// `verify_master_pubkey_sign`.
    master_sign_pubkey: bool = false,
    /// The name of the key pair in `pki_dir` that signs the master's public key.
    master_sign_key_name: String = "master_sign".into(),
    /// The passphrase of the key `master_sign_key_name`.
    signing_key_pass: Option<String> = None,
    /// Whether the signature is read from a file in `pki_dir` instead of computed.
    master_use_pubkey_signature: bool = false,
    /// The name of that file; by default `master_pubkey_signature`, as up to Salt 3007, or `<id>_pubkey_signature`.
    master_pubkey_signature: Option<String> = None,
    /// Whether every new key is accepted. For tests only.
    auto_accept: bool = false,
    /// Whether every key is accepted, also a changed one: no authentication at all. For tests only.
    open_mode: bool = false,
    /// A file of ids, globs and regular expressions, one a line, whose keys are accepted.
    autosign_file: Option<PathBuf> = None,
    /// A file of ids, globs and regular expressions, one a line, whose keys are rejected.
    autoreject_file: Option<PathBuf> = None,
    /// The number of minutes after which a file in `minions_autosign` below `pki_dir` no longer accepts its minion; 0
    /// for never.
    autosign_timeout: u64 = 120,
    /// A directory with one file per grain: the key of a minion whose grain has a value listed in the file is
    /// accepted.
    autosign_grains_dir: Option<PathBuf> = None,
    /// Whether `autosign_file` and similar files may be writable by their group.
    permissive_pki_access: bool = false,
    /// The maximum number of accepted keys; 0 for no limit.
    max_minions: usize = 0,
    /// The maximum number of pending keys; further minions are asked to retry later. 0 for no limit.
    max_pending_keys: usize = 20_000,
    /// The number of authentications per second and address in the long run, with bursts of ten times as many. Excess
    /// ones wait and are then dropped. 0 for no limit.
    auth_rate_limit: u32 = 1000,
    /// The number of runner and wheel functions that run concurrently; further calls wait.
    runner_threads: usize = 256,
    /// The number of seconds for which a published job is delivered to a Brine minion that was disconnected; 0 turns
    /// this off.
    publish_catch_up: u64 = 60,
    /// Whether jobs do not wait for minions that are certainly disconnected (`[Not connected]`).
    skip_disconnected: bool = true,
    /// The number of seconds after which the session keys are rotated.
    publish_session: u64 = 86_400,
    /// Whether the session keys are rotated when a key is deleted or rejected.
    rotate_aes_key: bool = true,
    /// The lowest protocol version that minions may use.
    minimum_auth_version: i64 = 3,
    /// The session ciphers that minions may choose from: `aes-256-gcm` (Brine) and `aes-192-cbc-hmac` (Salt).
    ciphers: Vec<String> = vec!["aes-256-gcm".into(), "aes-192-cbc-hmac".into()],
    /// Whether publishes with Salt's cipher are signed. Publishes with AES-256-GCM always are.
    sign_pub_messages: bool = true,
    /// The algorithm of the signatures of publishes: PKCS1v15-SHA1, or PKCS1v15-SHA224 for minions in FIPS mode.
    publish_signing_algorithm: String = "PKCS1v15-SHA1".into(),
    /// Whether unsigned returns are refused; minions sign them with `minion_sign_messages`.
    require_minion_sign_messages: bool = false,
    /// Whether returns with an invalid signature are refused instead of only logged.
    drop_messages_signature_fail: bool = false,
    /// Whether jobs are sent only to the targeted minions among those with `zmq_filtering`. Minions without it receive
    /// every job.
    zmq_filtering: bool = false,
    /// The number of seconds after which a minion's request counts as replayed; 0 for never.
    request_server_ttl: u64 = 0,
    /// The functions that minions may publish to other minions: a mapping of regular expressions of minion ids to
    /// lists of regular expressions of functions.
    peer: Map = Map::new(),
    /// The runner functions that minions may call, in the form of `peer`.
    peer_run: Map = Map::new(),
    /// The functions whose mine data minions may read, in the form of `peer`; all if unset.
    mine_get: Option<Map> = None,
    /// Whether a minion may delete its own key.
    allow_minion_key_revoke: bool = true,
    /// Whether there are masters below this one, whose syndics pass on its jobs and the returns of their minions.
    order_masters: bool = false,
    /// Whether users of `sudo` may publish only what `publisher_acl` permits to them.
    sudo_acl: bool = false,
    /// Whether `salt` prints the job id first, as with `--show-jid`.
    show_jid: bool = false,
    /// Whether `salt` shows minions that did not return; `--hide-timeout` hides them, too.
    show_timeout: bool = true,
    /// Whether `salt` prints a summary, as with `--summary`.
    cli_summary: bool = false,
    /// Globs of the ids that may act as syndics, with `order_masters`. Brine's own.
    syndics: Vec<String> = vec!["*".into()],
    /// The number of seconds that a job waits for syndics to report which minions run it.
    syndic_wait: Number = Number::of(5),
    /// The name by which masters below recognise the jobs of this one.
    master_id: Option<String> = None,
    /// The masters above, to which `salt-syndic` connects: hosts, each with or without a port.
    syndic_master: Vec<String> = Vec::new(),
    /// The TCP port of the masters above for requests; by default the `master_port` of the minion's configuration.
    syndic_master_port: Option<u16> = None,
    /// The fingerprint of the key of the masters above that is required at the first contact.
    syndic_finger: Option<String> = None,
    /// What `salt-syndic` passes on: `sync` for all events, `cluster` for the jobs of the masters above alone.
    syndic_mode: String = "sync".into(),
    /// The user that `salt-syndic` runs as; by default `user`.
    syndic_user: Option<String> = None,
    /// The file that holds the PID of `salt-syndic`.
    syndic_pidfile: PathBuf = "/var/run/salt-syndic.pid".into(),
    /// The log file of `salt-syndic`; `''` for none.
    syndic_log_file: PathBuf = "/var/log/salt/syndic".into(),
    /// Whether minions may push files to the master (`cp.push`).
    file_recv: bool = false,
    /// The maximum size of a pushed file, in MiB.
    file_recv_max_size: u64 = 100,

    /// The number of seconds between two fetches of the repositories in `gitfs_remotes`.
    gitfs_update_interval: Number = Number::of(60),
    /// Whether minions stop a state run at the first failed state.
    failhard: bool = false,
    /// Whether states run in the order of their definition.
    state_auto_order: bool = true,
    /// Whether minions publish an event for each finished state.
    state_events: bool = false,
    /// The state modules whose states minions aggregate; `True` for all.
    state_aggregate: Value = Value::Bool(false),
    /// Options of the Jinja environment of templates: `trim_blocks`, `lstrip_blocks`.
    jinja_env: Map = Map::new(),
    /// Options of the Jinja environment of SLS files: `trim_blocks`, `lstrip_blocks`.
    jinja_sls_env: Map = Map::new(),
    /// Whether whitespace before a Jinja block is removed.
    jinja_lstrip_blocks: bool = false,
    /// Whether the newline after a Jinja block is removed.
    jinja_trim_blocks: bool = false,
    /// Whether rendered pillars are cached in memory, by minion.
    pillar_cache: bool = false,
    /// The number of seconds for which rendered pillars are cached.
    pillar_cache_ttl: u64 = 3600,

    /// Whether a plan of `salt --plan` is applied only after another user has approved it by `plan.approve`.
    plan_approval: bool = false,

    /// The cluster of masters that this one belongs to: `servers`, `name`, `member`, `secret_file`, ...; docs/cluster.md lists
    /// them.
    cluster: Map = Map::new(),

    /// The reactor SLS files by event tag: a list of one-key mappings of tag glob to files.
    reactor: Value = Value::List(Vec::new()),
    /// The files of rules over time: paths, globs of paths, or `salt://` paths.
    reactor_rules: Vec<String> = Vec::new(),
    /// The number of events that are reacted to concurrently.
    reactor_worker_threads: usize = 10,
    /// The number of events that wait for a reactor worker in memory; further ones wait in the journal.
    reactor_worker_hwm: usize = 10_000,
    /// The number of seconds that the reactions to one event may take, including the functions that they call. Then
    /// they are cancelled and become dead letters (`reactor.failed`).
    reactor_deadline: u64 = 3600,
    /// The space for dead letters with their events, in MB; beyond it, and beyond 10,000 letters, the oldest are dropped.
    reactor_dead_letters_size: u64 = 64,
    /// The number of retries of a reaction with a temporary failure.
    reactor_retries: u32 = 5,
    /// The length of a chain of reactions from which on it counts as a loop.
    reactor_max_depth: u64 = 16,
    /// How often an entry may react, by its pattern: `10/1m`, or `{rate: 10/1m, by: id}`.
    reactor_rate_limit: Map = Map::new(),
    /// The number of seconds for which an entry ignores events after a reaction, by its pattern: `60`, or `{within:
    /// 60, by: id}`.
    reactor_cooldown: Map = Map::new(),
    /// The time without events after which an entry reacts once, to the last event, by its pattern.
    reactor_debounce: Map = Map::new(),

    /// Systems that authenticate users, each with the entries of its users.
    external_auth: Map = Map::new(),
    /// Users of this machine who may publish jobs, each with entries.
    publisher_acl: Map = Map::new(),
    /// The group whose members may follow events on this host, and so see the returns of their jobs, if `publisher_acl`,
    /// `external_auth` or `api_user` is set; by default the group of the master's user, or that of `api_user`. Brine's own.
    sock_group: Option<String> = None,
    /// Users who may publish nothing (`users`), and functions that nobody may call (`modules`).
    publisher_acl_blacklist: Map = Map::new(),
    /// Whether the entries of `*` hold for users who have entries of their own, too.
    permissive_acl: bool = false,
    /// Whether users without an entry `events` see all events in salt-api, as in Salt. Otherwise they see those of their own
    /// jobs and calls, and of functions on minions that they may use. Brine's own.
    open_events: bool = false,
    /// The longest timeout in seconds that users of `publisher_acl` and `external_auth` may request without a permission
    /// for it. Brine's own.
    max_user_timeout: u64 = 86_400,
    /// Whether the entries of a user at login hold as long as the token, whatever the configuration says later.
    keep_acl_in_token: bool = false,
    /// For how many seconds tokens of users are valid.
    token_expire: u64 = 43_200,
    /// The module of `_tokens` that stores the tokens of users; by default they are in the master's store.
    eauth_tokens: String = "localfs".into(),
    /// Who may choose how long a token is valid: everybody (`True`), or lists of users by system.
    token_expire_user_override: Value = Value::Bool(false),
    /// The file in which `salt -T` keeps a user's token; by default `salt_token` in the user's configuration of Salt, or
    /// `.salt_token` in the home directory.
    token_file: Option<String> = None,
    /// The password of all users of the system `sharedsecret` of `external_auth`.
    sharedsecret: Option<String> = None,

    /// The kind of roster of `salt-ssh`: `flat`, `ansible`, `cache`, `clustershell`, `dir`, `range`, `scan`,
    /// `sshconfig` or `sshknownhosts`.
    roster: String = "flat".into(),
    /// The roster file; by default `roster` in the directory of the configuration.
    roster_file: Option<PathBuf> = None,
    /// The directory of the roster `dir`.
    roster_dir: PathBuf = "/etc/salt/roster.d".into(),
    /// The domain of hosts of the roster `dir` that have no `host`.
    roster_domain: String = String::new(),
    /// The file of the roster `sshconfig`; by default `~/.ssh/config`.
    ssh_config_file: Option<PathBuf> = None,
    /// Groups of hosts for `salt-ssh -N`, each a list of ids, or ids separated by commas.
    ssh_list_nodegroups: Map = Map::new(),
    /// The file of the host keys that `salt-ssh` knows; unset for those of `ssh` (`~/.ssh/known_hosts`).
    known_hosts_file: Option<PathBuf> = None,
    /// The file of the roster `sshknownhosts`.
    ssh_known_hosts_file: PathBuf = "/etc/ssh/ssh_known_hosts".into(),
    /// The host and port of the range server, for the roster `range` and the targets of `salt-ssh -R`.
    range_server: String = "range:80".into(),
    /// The TCP ports of the rosters `scan` and `clustershell`: a number, or several with commas or as a list.
    ssh_scan_ports: Value = Value::Int(22),
    /// The number of seconds that a port of the rosters `scan` and `clustershell` has to answer.
    ssh_scan_timeout: f64 = 0.01,
    /// Fields of all hosts of a roster that do not have them.
    roster_defaults: Map = Map::new(),
    /// The number of hosts that `salt-ssh` works on at the same time.
    ssh_max_procs: usize = 25,
    /// The user of logins by `salt-ssh`, unless the roster names one.
    ssh_user: String = "root".into(),
    /// The TCP port of hosts, unless the roster names one.
    ssh_port: Option<u16> = None,
    /// The password of logins, unless the roster names one.
    ssh_passwd: Option<String> = None,
    /// The private key, or `agent-forwarding`, unless the roster names one.
    ssh_priv: Option<String> = None,
    /// Whether the private key is `~/.ssh/id_rsa`, if there is one.
    ssh_use_home_key: bool = false,
    /// The passphrase of the private key.
    ssh_priv_passwd: Option<String> = None,
    /// Whether functions run as root by `sudo`.
    ssh_sudo: bool = false,
    /// The user that functions run as by `sudo`.
    ssh_sudo_user: Option<String> = None,
    /// The number of seconds that connecting to a host may take.
    ssh_timeout: Number = Number::of(60),
    /// The number of seconds that a call of a host by ssh may take in all; 0 for no limit.
    ssh_call_timeout: u64 = 86_400,
    /// Whether `ssh` checks that a host is there.
    ssh_keepalive: bool = true,
    /// The number of seconds between two checks that a host is there; 15 by default.
    ssh_keepalive_interval: Option<u64> = None,
    /// The number of checks without an answer after which a connection ends; 4 by default.
    ssh_keepalive_count_max: Option<u64> = None,
    /// The number of seconds that a connection to a host stays open for further calls; 0 for none.
    ssh_control_persist: u64 = 60,
    /// The directory of the static programs for hosts, such as `brine-ssh-host-aarch64`.
    ssh_program_dir: PathBuf = "/usr/lib/brine/ssh".into(),
    /// Whether keys of hosts that are not known yet are accepted.
    ignore_host_keys: bool = false,
    /// Whether only the given private key is tried.
    ssh_identities_only: bool = false,
    /// Options of `ssh` for all hosts, each without `-o`.
    ssh_options: Vec<String> = Vec::new(),
    /// Options of the minion that runs functions on the hosts.
    ssh_minion_opts: Map = Map::new(),
    /// Whether the program and its cache are removed from the host after each run.
    ssh_wipe: bool = false,
    /// Whether `salt-ssh` adds a host that its target names to the roster file, if it is not there.
    ssh_update_roster: bool = false,
    /// Whether the script `ssh_pre_flight` of a host is run although the host has the program's directory.
    ssh_run_pre_flight: bool = false,
    /// The log file of `salt-ssh`; `''` for none.
    ssh_log_file: PathBuf = "/var/log/salt/ssh".into(),

    /// Whether master, syndic and API give up privileges that they do not need: capabilities, set-user-ID programs and
    /// system calls, also for the programs that they start; docs/security.md lists them.
    sandbox: bool = true,
    /// The user that `salt-api` runs as if root starts it; without it, that of the option `user`. The master lets this
    /// user read the key of the REST API.
    api_user: Option<String> = None,
    /// The file that holds the PID of `salt-api`.
    api_pidfile: PathBuf = "/var/run/salt-api.pid".into(),
    /// The log file of `salt-api`; `''` for none.
    api_logfile: PathBuf = "/var/log/salt/api".into(),
    /// Whether the client `ssh` of the REST API takes commands of the hosts' shell (`raw_shell`).
    netapi_allow_raw_shell: bool = false,
    /// The options of the REST API (`salt-api`), under Salt's names; docs/api.md lists them.
    rest_cherrypy: Map = Map::new(),
    /// The same in the form of Salt's other server; without effect beside `rest_cherrypy`.
    rest_tornado: Map = Map::new(),
    /// The clients that the REST API runs: `local`, `local_async`, `local_batch`, `local_subset`, `runner`,
    /// `runner_async`, `ssh`, `wheel` and `wheel_async`.
    netapi_enable_clients: Vec<String> = Vec::new(),
    /// The number of seconds that the REST API waits for the result of a runner or wheel function.
    rest_timeout: u64 = 300,

    /// Directories of custom runner modules.
    runner_dirs: Vec<String> = Vec::new(),
    /// The queue of `queue.insert_runner` and `process_runner`: `queue` is its name.
    runner_queue: Map = Map::new(),

    /// Whether `salt/auth` events are published.
    auth_events: bool = true,
    /// The acts (`pend`, `denied`, ...) whose `salt/auth` events include the minion's `autosign_grains`.
    auth_events_autosign_grains: Vec<String> = Vec::new(),
    /// Whether `salt/stats` events with the durations of requests are published.
    master_stats: bool = false,
    /// The number of seconds between two `salt/stats` events.
    master_stats_event_iter: u64 = 60,
    /// Whether a new job is also published under its bare job id, as up to Salt 3007.
    bare_jid_events: bool = false,
    /// Whether the grains and pillars of minions are stored, for targets. Otherwise, targets by them are resolved by the
    /// minions alone, and permissions by them permit nothing.
    minion_data_cache: bool = true,
    /// Whether mines are stored without `minion_data_cache`, too.
    enforce_mine_cache: bool = false,
    /// Whether the grains, pillar and mine of a minion stay when its key is deleted. The next minion of this id has them.
    preserve_minion_cache: bool = false,
    /// Whether `minion/refresh` events are published.
    minion_data_cache_events: bool = true,
    /// Whether all jobs with their returns, and the grains of minions, are also written as the files that Salt's own
    /// programs on the master's host read (`salt-run jobs.list_jobs` and `cache.grains` of Salt, `RunnerClient.cmd`), and
    /// the tokens of users, so that a logout of Salt's `salt-api` ends its token.
    salt_client_files: bool = false,
    /// Whether `salt/fileserver/roots/update` events are published.
    fileserver_events: bool = false,
    /// The number of seconds between two checks of `file_roots` for changes, for `fileserver_events`.
    roots_update_interval: Number = Number::of(60),
    /// Whether `salt/presence` events are published.
    presence_events: bool = false,
    /// The default outputter of `salt`.
    output: Option<String> = None,
}

impl MasterConfig {
    #[expect(clippy::unused_self, reason = "the minion's has something to do")]
    fn finish_opts(&mut self) {}

    fn finish_paths(&mut self) {
        let root = self.root_dir.clone();
        for path in [
            &mut self.pki_dir,
            &mut self.cachedir,
            &mut self.sock_dir,
            &mut self.pidfile,
            &mut self.api_pidfile,
            &mut self.syndic_pidfile,
        ]
        .into_iter()
        .chain(&mut self.extension_modules)
        {
            *path = below_root(&root, path);
        }
        for path in [
            &mut self.log_file,
            &mut self.key_logfile,
            &mut self.api_logfile,
            &mut self.syndic_log_file,
            &mut self.ssh_log_file,
        ] {
            *path = log_below_root(&root, path);
        }
        for path in
            [&mut self.autosign_file, &mut self.autoreject_file, &mut self.autosign_grains_dir].into_iter().flatten()
        {
            *path = below_root(&root, path);
        }
    }

    /// Returns the lifetime of jobs in the job cache; zero means forever.
    pub fn job_lifetime(&self) -> Duration {
        lifetime(self.keep_jobs_seconds, self.keep_jobs)
    }
}

/// Returns the lifetime of jobs, from `keep_jobs_seconds` or `keep_jobs` in `opts`; zero means forever.
///
/// # Errors
///
/// A value that is not a number of seconds or hours.
pub fn job_lifetime(opts: &Map) -> Result<Duration, BadOption> {
    let hours = checked(opts, "keep_jobs")?;
    Ok(lifetime(checked(opts, "keep_jobs_seconds")?, hours.unwrap_or_else(|| opts::keep_jobs(&Map::new()))))
}

/// Rounds up to whole seconds, because zero means forever.
fn lifetime(seconds: Option<Number>, hours: Number) -> Duration {
    Duration::from_secs(seconds.unwrap_or_else(|| hours.times(3600)).whole_seconds())
}
