//! The arguments that state functions know beside those that they declare: they are read as `**kwargs`, passed on to
//! execution functions, or accepted by Salt on other systems.

/// Further arguments of a function.
pub(super) struct Further {
    /// The names. One that ends in `*` stands for all with that start.
    pub names: Vec<&'static str>,
    /// Whether arguments that the function does not know are variables of its template.
    pub are_variables: bool,
}

impl Further {
    /// Whether the function knows the argument.
    pub fn takes(&self, name: &str) -> bool {
        self.names.iter().any(|known| match known.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *known == name,
        })
    }
}

/// Returns the further arguments of a function; `None` for one that accepts any, such as `module.run`.
pub(super) fn further(function: &str) -> Option<Further> {
    if function.ends_with(".mod_watch") || function.ends_with(".mod_beacon") {
        return None;
    }
    let is_it = |name: &str| name.strip_suffix('*').map_or(name == function, |start| function.starts_with(start));
    let (_, are_variables, names) = FURTHER.iter().find(|(functions, ..)| functions.split_whitespace().any(is_it))?;
    Some(Further { names: names.split_whitespace().collect(), are_variables: *are_variables })
}

/// The functions with `**kwargs` whose arguments are known, by name or, with `*`, by start; whether unknown arguments are
/// variables of a template; further arguments. All other functions accept any argument.
const FURTHER: &[(&str, bool, &str)] = &[
    ("archive.extracted", false, "archive_user excludes keep keep_source runas tar_options template zip_options"),
    ("at.absent", false, "day hour job limit minute month runas tag year"),
    (
        "beacon.absent beacon.disabled beacon.enabled debconf.set file.absent file.accumulated file.exists \
         file.hardlink file.missing file.rename file.tidied gpg.absent gpg.present highstate_doc.note \
         ipset.flush ipset.set_absent iptables.flush iptables.set_policy mount.mounted mount.unmounted \
         nftables.flush nftables.set_policy nftables.table_absent nftables.table_present \
         salt.parallel_runners",
        false,
        "",
    ),
    ("blockdev.formatted", false, "fat inode_size lazy_itable_init"),
    ("cmd.call cmd.wait_call", false, "args cwd env func hide_output kws output_loglevel runas shell stateful use_vt"),
    (
        "cmd.run cmd.wait cmd.watch",
        false,
        "args bg clean_env cwd encoded_cmd env group hide_output ignore_retcode ignore_timeout interpreter \
         log_callback loglevel output_encoding output_loglevel password pillar pillar_override pillarenv \
         prepend_path python_shell quiet raise_err redirect_stderr reset_system_locale root rstrip runas \
         shell stateful stderr stdin stdin_raw_newlines stdout success_retcodes success_stderr success_stdout \
         timeout use_vt windows_codepage with_communicate",
    ),
    (
        "cmd.script cmd.wait_script",
        false,
        "args bg clean_env context cwd defaults encoded_cmd env group hide_output ignore_retcode \
         ignore_timeout interpreter log_callback loglevel output_encoding output_loglevel password pillar \
         pillar_override pillarenv prepend_path python_shell quiet raise_err redirect_stderr \
         reset_system_locale retcode root rstrip runas saltenv shell source stateful stderr stdin \
         stdin_raw_newlines stdout success_retcodes success_stderr success_stdout template timeout use_vt \
         windows_codepage with_communicate",
    ),
    ("cron.absent", false, "cmd comment commented daymonth dayweek hour minute month"),
    ("cron.file", true, "backup context source source_hash_sig"),
    ("debconf.set_file file.patch", true, "context"),
    ("file.copy", false, "group mode user"),
    ("file.directory", false, "win_deny_perms win_inheritance win_owner win_perms win_perms_reset"),
    (
        "file.managed",
        true,
        "allow_empty contents_delimiter context encoding encoding_errors env file_mode keep_mode keep_source \
         serange serole setype seuser sources win_deny_perms win_inheritance win_owner win_perms \
         win_perms_reset",
    ),
    (
        "file.recurse",
        true,
        "context env keep_mode keep_source mode win_deny_perms win_inheritance win_owner win_perms \
         win_perms_reset",
    ),
    (
        "file.serialize",
        true,
        "contents_newline context defaults dir_mode encoding encoding_errors env file_mode follow_symlinks \
         keep_source replace skip_verify source template",
    ),
    (
        "file.symlink",
        false,
        "atomic disallow_copy_and_unlink follow_symlinks win_deny_perms win_inheritance win_owner win_perms \
         win_perms_reset",
    ),
    ("firewall.check", false, "family proto timeout"),
    ("mysql_*", false, "connection_* grain key runas"),
    (
        "pip.*",
        false,
        "allow_all_external allow_external allow_unverified bin_env build cache_dir cert cwd \
         disable_version_check download download_cache editable env_vars exists_action extra_args \
         extra_index_url find_links force_reinstall global_options ignore_installed index_url install_options \
         log mirrors no_binary no_cache_dir no_deps no_download no_index no_install no_use_wheel pip_bin pkgs \
         pre_releases process_dependency_links proxy repo requirements source target timeout trusted_host \
         upgrade use_vt use_wheel user",
    ),
    (
        "pkg.*",
        false,
        "admin_source advisory_ids aggregate all_installed allow_downgrades allow_updates attr batch branch \
         cache_valid_time check_update chroot current_zone_only cyg_arch debconf diff_attr disableexcludes \
         disablerepo dist_upgrade download_only downloadonly dryrun enablerepo env extra_args \
         extra_install_flags extra_uninstall_flags fetchonly force force_conf_new force_yes fromrepo full \
         gem_bin get_extra_options glob gpgautoimport hold ignore_epoch ignore_repo_failure ignore_types \
         include include_casks include_components include_updates includes install_recommends jail local \
         minimal mirrors no_recommends normalize novendorchange obsoletes only_upgrade options orphan pcre \
         pkg_verify pkgs purge_desired quiet recurse refresh regex reinstall reinstall_requires removed repo \
         report_reboot_exit_codes repos resolve_capabilities root ruby saltenv setopt show_installed skip \
         skip_suggestions skip_verify source sources split_arch sysupgrade taps test timeout update_holds \
         use_context variant verbose verify_ssl version versions_as_list watch_flags with_origin",
    ),
    ("postgres_*", false, "db_host db_password db_port db_user maintenance_db runas user"),
    ("salt.function", false, "roster ssh"),
    ("salt.state", false, "orchestration_jid roster ssh sync_mods"),
    ("saltutil.*", false, "clean_pillar_cache extmod_blacklist extmod_whitelist refresh saltenv"),
    ("schedule.absent", false, "fire_event offline persist test"),
    ("schedule.disabled schedule.enabled", false, "offline persist test"),
    (
        "schedule.present",
        false,
        "after args cron days dry_run enabled function hours jid_include job_args job_kwargs kwargs \
         maxrunning metadata minutes offline once once_fmt persist range return_config return_job \
         return_kwargs returner run_after_skip_range run_on_start seconds skip_during_range splay test until \
         wait when",
    ),
    (
        "service.*",
        false,
        "domain enable enabled force full_restart init_delay levels limit no_block reload restart root runas \
         runlevels session sig skip_verify start_delayed start_type sysvinit timeout unmask unmask_runtime \
         wait_for",
    ),
    ("ssh_auth.*", false, "comment config enc options source"),
    ("supervisord.*", false, "runas"),
    ("syslog_ng.started", false, "cfgfile use_fd worker_threads"),
    (
        "virtualenv.*",
        false,
        "clear cwd distribute env_vars extra_index_url extra_search_dir find_links index_url never_download \
         no_binary no_chown no_deps no_use_wheel pip pip_bin pip_cache_dir pip_download pip_download_cache \
         pip_exists_action pip_ignore_installed pip_no_cache_dir pip_pkgs pip_upgrade pre_releases \
         process_dependency_links prompt proxy python requirements symlinks system_site_packages upgrade \
         use_vt use_wheel user venv_bin",
    ),
];
