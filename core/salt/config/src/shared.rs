//! The options that master and minion share: logging, output, and those for serving files and rendering, which
//! masterless minions do themselves.

use std::path::PathBuf;

use super::{Roots, Transport};

/// Declares a configuration as `options!` does, with these options added; `@readers` declares the functions that read
/// these alone.
macro_rules! shared_options {
    (@readers) => { shared_options!(@declare [$crate::options::readers]); };
    (@declare [$($macro:tt)*] $($own:tt)*) => { $($macro)*! {
        $($own)*

        /// The directory that all other default paths are relative to.
        root_dir: PathBuf = "/".into(),
        /// The user that the daemon runs as. Only root can start it to run as another user.
        user: Option<String> = None,
        /// The lowest level that is logged to stderr: all, garbage, trace, debug, profile, info, warning, error, critical
        /// or quiet.
        log_level: String = "warning".into(),
        /// The lowest level that is logged to the log file; by default `log_level`.
        log_level_logfile: Option<String> = None,
        /// Log levels by target (`%(name)s` of log lines) or by Salt's loggers, such as `salt.master` and, for all, `salt`.
        /// They only lower `log_level` and `log_level_logfile`.
        log_granular_levels: Map = Map::new(),
        /// Whether the tools exit with 0, as Salt's do, for calls that did nothing because they were wrong: an unknown node
        /// group, key or runner function, a master that is down, minions that did not return. By default they exit with a
        /// failure.
        salt_exit_status: bool = false,
        /// The format of log lines on stderr, with Python's `%(name)s` attributes; by default Salt's, for daemons with
        /// date and time in front.
        log_fmt_console: Option<String> = None,
        /// The format of log lines in the log file; by default Salt's.
        log_fmt_logfile: Option<String> = None,
        /// The format of `%(asctime)s` on stderr, as for strftime.
        log_datefmt: Option<String> = None,
        /// The same as `log_datefmt`, over which it takes precedence.
        log_datefmt_console: Option<String> = None,
        /// The format of `%(asctime)s` in the log file, as for strftime.
        log_datefmt_logfile: Option<String> = None,
        /// The maximum size of a message from the network, in bytes.
        max_message_size: usize = 64 << 20,
        /// The number of seconds after which a connection to a web server fails; 0 for no limit.
        http_connect_timeout: f64 = 20.0,
        /// The number of seconds after which a request to a web server fails, with its body; 0 for no limit.
        http_request_timeout: f64 = 3600.0,
        /// The maximum size of the body of a web server's response, in bytes.
        http_max_body: u64 = 1 << 30,
        /// The number of bytes a second that the body of a web server's response must have on the average of each minute;
        /// a slower response fails. 0 for no limit.
        http_min_rate: u64 = 100,
        /// The transport between masters and minions, the same on both sides: `zeromq`, or `tcp` for streams of msgpack
        /// messages without ZeroMQ.
        transport: Transport = Transport::default(),
        /// Whether the system probes silent connections, to notice peers that have vanished.
        tcp_keepalive: bool = true,
        /// The number of seconds of silence before the first probe; -1 for the system's value.
        tcp_keepalive_idle: i64 = 60,
        /// The number of seconds between two probes; -1 for the system's value.
        tcp_keepalive_intvl: i64 = 20,
        /// The number of unanswered probes after which a connection ends; -1 for the system's value.
        tcp_keepalive_cnt: i64 = 3,
        /// The length of new RSA keys, in bits.
        keysize: usize = 2048,
        /// Whether text from events may neither change the structure of a rendered reactor SLS nor match more minions or
        /// keys than itself. `False` inserts such text into the YAML unchecked, as Salt does.
        reactor_strict_data: bool = true,
        /// Globs of names of arguments whose values are secret: they are masked in events, journal, job cache, returners
        /// and logs. Compared in lower case, with `_` for `-`, `.` and spaces; `apiKey` is `api_key`. Covers names of
        /// keyword and positional arguments and of keys in nested data. With `FUNCTION:` in front only in calls of functions
        /// that match this glob, such as `sdb.set:value`.
        masked_names: Vec<String> = brine_mask::MASKED_NAMES.iter().copied().map(str::to_owned).collect(),
        /// Globs of names that are not masked although `masked_names` matches them, in the same form: `grains.*:key`.
        unmasked_names: Vec<String> = brine_mask::UNMASKED_NAMES.iter().copied().map(str::to_owned).collect(),
        /// Whether output on terminals is coloured.
        color: bool = true,
        /// How the highstate outputter shows states: full, terse, mixed, changes or filter, also with `_id` appended.
        state_output: String = "full".into(),
        /// Whether the highstate outputter shows states that succeeded without changes.
        state_verbose: bool = true,

        /// How Python runs custom modules: the path of an interpreter, or a mapping with `path` or `venv` (a virtual
        /// environment), and `idle`, the seconds without calls after which it ends; by default `python3` and 60.
        python_host: Value = Value::Nil,
        /// Whether functions that Brine lacks are those of the package `salt` and of installed `saltext-*` packages, by the
        /// interpreter of `python_host`: on minions execution and state functions, beacons and returners, on masters runner
        /// functions, external pillar and tops.
        python_fallback: bool = false,
        /// The directory of custom modules that `saltutil.sync_*` copies from the file server, with a directory for
        /// each type; by default `extmods` in `cachedir`.
        extension_modules: Option<PathBuf> = None,
        /// Directories of custom modules: execution modules in the directory itself, and all types in one named after
        /// the type, such as `states` or `_states`.
        module_dirs: Vec<String> = Vec::new(),
        /// Directories of custom utility modules.
        utils_dirs: Vec<String> = Vec::new(),
        /// Directories of custom outputters.
        outputter_dirs: Vec<String> = Vec::new(),
        /// Directories of custom returners.
        returner_dirs: Vec<String> = Vec::new(),
        /// Directories of custom engines.
        engines_dirs: Vec<String> = Vec::new(),
        /// Functions that run as long as the daemon: the names of engines, or mappings of a name to the arguments of its
        /// function `start`.
        engines: Value = Value::Nil,
        /// What assigns SLS files to minions beside the top file: the names of modules, each with its configuration.
        master_tops: Map = Map::new(),
        /// The directories of state and other files, by environment.
        file_roots: Roots = $crate::shared::roots("/srv/salt"),
        /// The directories of pillar files, by environment.
        pillar_roots: Roots = $crate::shared::roots("/srv/pillar"),
        /// Globs of file names that are not served.
        file_ignore_glob: Vec<String> = Vec::new(),
        /// Regular expressions of file names that are not served.
        file_ignore_regex: Vec<String> = Vec::new(),
        /// Whether symbolic links may point outside their file root, and are followed in listings.
        fileserver_followsymlinks: bool = true,
        /// Whether listings omit symbolic links.
        fileserver_ignoresymlinks: bool = false,
        /// The render pipe of SLS files without a `#!` line.
        renderer: String = "jinja|yaml".into(),
        /// The renderers that SLS files may not name.
        renderer_blacklist: Vec<String> = Vec::new(),
        /// The only renderers that SLS files may name; none for all.
        renderer_whitelist: Vec<String> = Vec::new(),
        /// The returners that are not there: their names, or those of Salt's files, such as `redis_return`.
        disable_returners: Vec<String> = Vec::new(),
        /// The number of steps that a render may take: one per instruction and one per 64 bytes processed. 0 for no
        /// limit.
        template_fuel: u64 = 200_000_000,
        /// The number of bytes of memory that a render may hold at a time. 0 for no limit.
        template_memory: u64 = 64 << 20,
        /// The number of bytes that a template may render to. 0 for no limit.
        template_output: u64 = 64 << 20,
        /// External pillar sources: a list of one-key mappings of module to arguments.
        ext_pillar: Value = Value::List(Vec::new()),
        /// The names of the external pillar sources that minions may ask for by `pillar.ext`, with arguments of their own:
        /// `gpg`, `nodegroups` and custom modules.
        on_demand_ext_pillar: Vec<String> = ["libvirt", "virtkey"].map(str::to_owned).into(),
        /// Whether pillar files override the external pillar and can read it while they render. By default the
        /// external pillar overrides pillar files.
        ext_pillar_first: bool = false,
        /// How several sources of pillar are merged: smart, recurse, overwrite, aggregate or none.
        pillar_source_merging_strategy: String = "smart".into(),
        /// Whether lists of several pillar sources are concatenated instead of replaced.
        pillar_merge_lists: bool = false,
        /// Whether included pillar files override the file that includes them.
        pillar_includes_override_sls: bool = false,
        /// Whether the pillar has the configuration of the master as `master`, to every minion: with its passwords.
        pillar_opts: bool = false,
        /// Whether errors of rendering pillar files are hidden from minions: they learn only that rendering failed.
        pillar_safe_render_error: bool = true,
        /// Pillar paths whose values are decrypted: a list of paths, or a mapping of path to renderer.
        decrypt_pillar: Value = Value::List(Vec::new()),
        /// The renderer of paths in `decrypt_pillar` without one.
        decrypt_pillar_default: String = "gpg".into(),
        /// The renderers that `decrypt_pillar` may name: `gpg` and `nacl` decrypt.
        decrypt_pillar_renderers: Vec<String> = vec!["gpg".to_owned()],
        /// The separator of the keys in a `decrypt_pillar` path.
        decrypt_pillar_delimiter: String = ":".into(),
        /// The GnuPG home directory for encrypted values; by default `gpgkeys` in the configuration directory.
        gpg_keydir: Option<PathBuf> = None,
        /// Whether a value that cannot be decrypted is an error. Otherwise it stays encrypted.
        gpg_decrypt_must_succeed: bool = true,
        /// Whether decrypted values are cached in memory.
        gpg_cache: bool = false,
        /// The number of seconds for which decrypted values are cached.
        gpg_cache_ttl: u64 = 86400,
        /// Node groups by name, each a compound target.
        nodegroups: Map = Map::new(),
        /// The name of the top file.
        state_top: String = "top.sls".into(),
        /// The only environment whose top file is read.
        state_top_saltenv: Option<String> = None,
        /// How the top files of several environments are merged: merge, same or merge_all.
        top_file_merging_strategy: String = "merge".into(),
        /// The order in which environments are merged.
        env_order: Vec<String> = Vec::new(),
        /// The environment whose top file applies to all with `top_file_merging_strategy: same`.
        default_top: String = "base".into(),
    } };
    ($($own:tt)*) => { shared_options!(@declare [$crate::options::options] $($own)*); };
}

pub(super) use shared_options;

/// Functions that read single options from `opts`, for the options that master and minion share.
pub mod opts {
    use brine_value::{Map, Value};

    use super::{PathBuf, Roots, Transport};

    shared_options! { @readers }
}

/// Returns roots with one directory for `base`.
pub(super) fn roots(directory: &str) -> Roots {
    Roots::from([("base".to_owned(), vec![PathBuf::from(directory)])])
}
