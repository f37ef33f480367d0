//! The `opts` of templates: the configuration, merged over the defaults of Salt's minions, or of its masters.

use std::sync::LazyLock;

use brine_value::{Map, Value, list, map};

use super::{MasterConfig, MinionConfig};

/// Options of minions and masters that templates may read and Brine ignores, with Salt's defaults.
static DEFAULTS: LazyLock<Map> = LazyLock::new(|| {
    map! {
        "clean_dynamic_modules" => true,
        "event_match_type" => "startswith",
        "extmod_blacklist" => map! {},
        "extmod_whitelist" => map! {},
        "fileserver_backend" => list!["roots"],
        "fips_mode" => false,
        "hash_type" => "sha256",
        "interface" => "0.0.0.0",
        "ipc_mode" => "ipc",
        "ipv6" => Value::Nil,
        "jinja_env" => map! {},
        "jinja_lstrip_blocks" => false,
        "jinja_sls_env" => map! {},
        "jinja_trim_blocks" => false,
        "log_datefmt" => "%H:%M:%S",
        "log_datefmt_console" => "%H:%M:%S",
        "log_datefmt_logfile" => "%Y-%m-%d %H:%M:%S",
        "log_fmt_console" => "[%(levelname)-8s] %(message)s",
        "log_fmt_logfile" => "%(asctime)s,%(msecs)03d [%(name)-17s:%(lineno)-4d][%(levelname)-8s][%(process)d] %(message)s",
        "log_rotate_backup_count" => 0,
        "log_rotate_max_bytes" => 0,
        "pillarenv_from_saltenv" => false,
        "roots_update_interval" => 60,
        "ssl" => Value::Nil,
        "state_auto_order" => true,
        "state_output_diff" => false,
        "state_output_profile" => true,
        "test" => false,
        "transport" => "zeromq",
        "user" => "root",
        "winrepo_cachefile" => "winrepo.p",
        "winrepo_dir" => "/srv/salt/win/repo",
        "winrepo_dir_ng" => "/srv/salt/win/repo-ng",
    }
});

/// As [`DEFAULTS`], of masters alone.
static MASTER_DEFAULTS: LazyLock<Map> = LazyLock::new(|| {
    map! {
        "auth_mode" => 1,
        "con_cache" => false,
        "default_include" => "master.d/*.conf",
        "enable_gpu_grains" => false,
        "enable_ssh_minions" => false,
        "file_buffer_size" => 1_048_576,
        "file_client" => "local",
        "git_pillar_base" => "master",
        "git_pillar_branch" => "master",
        "git_pillar_env" => "",
        "git_pillar_root" => "",
        "gitfs_base" => "master",
        "gitfs_mountpoint" => "",
        "gitfs_root" => "",
        "lock_saltenv" => false,
        "maintenance_interval" => 3600,
        "master_roots" => map! {"base" => list!["/srv/salt-master"]},
        "master_tops_first" => false,
        "max_open_files" => 100_000,
        "minionfs_env" => "base",
        "minionfs_mountpoint" => "",
        "pillar_version" => 2,
        "pillarenv" => Value::Nil,
        "pub_hwm" => 1000,
        "saltenv" => Value::Nil,
        "serial" => "msgpack",
    }
});

/// As [`DEFAULTS`], of minions alone.
static MINION_DEFAULTS: LazyLock<Map> = LazyLock::new(|| {
    map! {
        "auth_retries" => 0,
        "auth_safemode" => false,
        "auth_tries" => 7,
        "autoload_dynamic_modules" => true,
        "cache" => "localfs",
        "cache_jobs" => false,
        "default_include" => "minion.d/*.conf",
        "disabled_requisites" => list![],
        "enable_fqdns_grains" => false,
        "enable_gpu_grains" => true,
        "engines" => list![],
        "file_buffer_size" => 262_144,
        "grains_cache" => false,
        "grains_cache_expiration" => 300,
        "grains_deep_merge" => false,
        "grains_dirs" => list![],
        "grains_refresh_every" => 0,
        "master_alive_interval" => 0,
        "master_failback" => false,
        "master_failback_interval" => 0,
        "master_shuffle" => false,
        "master_tries" => -1,
        "master_type" => "str",
        "module_dirs" => list![],
        "modules_max_memory" => -1,
        "multifunc_ordered" => false,
        "multiprocessing" => true,
        "outputter_dirs" => list![],
        "providers" => map! {},
        "random_master" => false,
        "random_reauth_delay" => 10,
        "recon_randomize" => true,
        "render_dirs" => list![],
        "resolve_dns_fallback" => true,
        "restart_on_error" => false,
        "retcode_passthrough" => false,
        "retry_dns" => 30,
        "retry_dns_count" => Value::Nil,
        "return_retry_timer" => 5,
        "return_retry_timer_max" => 10,
        "return_retry_tries" => 3,
        "returner_dirs" => list![],
        "skip_grains" => false,
        "ssh_merge_pillar" => true,
        "state_queue" => false,
        "states_dirs" => list![],
        "tcp_authentication_retries" => 5,
        "tcp_reconnect_backoff" => 1,
        "winrepo_source_dir" => "salt://win/repo-ng/",
    }
});

/// Returns the `opts` of a minion for its templates.
pub fn template_opts(config: &MinionConfig) -> Map {
    let mut opts = with_defaults(&config.opts, &MINION_DEFAULTS);
    opts.insert("__role".into(), "minion".into());
    for name in ["master_finger", "startup_states"] {
        if opts.get(name).is_none_or(Value::is_nil) {
            opts.insert(name.into(), "".into());
        }
    }
    // As in Salt, a single master is a string.
    if let [master] = config.master.as_slice() {
        opts.insert("master".into(), master.as_str().into());
    }
    if !config.state_top.contains("://") {
        opts.insert("state_top".into(), format!("salt://{}", config.state_top).into());
    }
    let modules = config.extension_modules.clone().unwrap_or_else(|| config.cachedir.join("extmods"));
    if config.utils_dirs.is_empty() {
        opts.insert("utils_dirs".into(), list![modules.join("utils")]);
    }
    opts.insert("extension_modules".into(), modules.into());
    opts
}

/// Returns the `opts` of a master for its templates and custom modules.
pub fn master_template_opts(config: &MasterConfig) -> Map {
    let mut opts = with_defaults(&config.opts, &MASTER_DEFAULTS);
    opts.insert("__role".into(), "master".into());
    opts.insert("extension_modules".into(), config.extension_modules().into());
    opts
}

/// Returns options with the defaults of those that are not set.
fn with_defaults(opts: &Map, defaults: &Map) -> Map {
    let mut opts = opts.clone();
    for (name, value) in DEFAULTS.iter().chain(defaults) {
        if opts.get(name).is_none_or(Value::is_nil) {
            opts.insert(name.clone(), value.clone());
        }
    }
    opts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_values_override_the_defaults() {
        let mut config = MinionConfig::default();
        config.opts.insert("hash_type".into(), "sha512".into());
        let opts = template_opts(&config);
        for (name, value) in [
            ("hash_type", Value::from("sha512")),
            ("__role", "minion".into()),
            ("master", "salt".into()),
            ("state_top", "salt://top.sls".into()),
            ("ipv6", Value::Nil),
            ("transport", "zeromq".into()),
            ("extension_modules", "/var/cache/salt/minion/extmods".into()),
        ] {
            assert_eq!(opts.get(name), Some(&value), "{name}");
        }
    }

    #[test]
    fn masters_have_the_defaults_of_masters() {
        let mut config = MasterConfig::default();
        config.opts.insert("user".into(), "salt".into());
        let opts = master_template_opts(&config);
        for (name, value) in [
            ("user", Value::from("salt")),
            ("hash_type", "sha256".into()),
            ("__role", "master".into()),
            ("file_client", "local".into()),
            ("file_buffer_size", 1_048_576.into()),
            ("default_include", "master.d/*.conf".into()),
            ("pillarenv", Value::Nil),
            ("extension_modules", "/var/cache/salt/master/extmods".into()),
        ] {
            assert_eq!(opts.get(name), Some(&value), "{name}");
        }
        assert_eq!(opts.get("return_retry_timer"), None, "of minions");
    }
}
