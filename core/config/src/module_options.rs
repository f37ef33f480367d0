//! The options that modules read by their names, with their documentation.

/// An option that a module reads by its name, although neither configuration declares it as a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleOption {
    /// Its name.
    pub name: &'static str,
    /// The type of its value, in words.
    pub expected: &'static str,
    /// Its default as written in YAML; empty if it has none.
    pub default: &'static str,
    /// The meaning of the value.
    pub doc: &'static str,
}

const fn option(name: &'static str, expected: &'static str, default: &'static str, doc: &'static str) -> ModuleOption {
    ModuleOption { name, expected, default, doc }
}

/// The options that modules read, sorted by name.
pub const MODULE_OPTIONS: &[ModuleOption] = &[
    option("conf_file", "a path", "", "The path of the main configuration file; set by Brine."),
    option(
        "default_include",
        "a list of strings",
        "",
        "Globs of drop-in files, relative to the configuration directory; by default `master.d/*.conf` or \
         `minion.d/*.conf`.",
    ),
    option("disabled_requisites", "a list of strings", "[]", "The requisites that state runs ignore."),
    option(
        "fileserver_backend",
        "a list of strings",
        "[roots]",
        "The file server backends in order of precedence: `roots`, `gitfs`, or `git`.",
    ),
    option("git_pillar_base", "a string", "master", "The branch or tag that is the environment `base`."),
    option("git_pillar_branch", "a string", "", "The branch of remotes without one; by default `git_pillar_base`."),
    option("git_pillar_env", "a string", "", "The environment of all remotes; by default the branch."),
    option("git_pillar_fallback", "a string", "", "The branch or tag that replaces a missing one."),
    option(
        "git_pillar_includes",
        "a boolean",
        "True",
        "Whether pillar files can include files of other remotes of the same environment.",
    ),
    option("git_pillar_mountpoint", "a string", "", "The directory below which the files of a repository are mounted."),
    option("git_pillar_password", "a string", "", "The password for `https://` remotes, with `git_pillar_user`."),
    option("git_pillar_privkey", "a path", "", "The private key for SSH remotes."),
    option(
        "git_pillar_ref_types",
        "a list of strings",
        "[branch, tag, sha]",
        "The kinds of references that can be named.",
    ),
    option(
        "git_pillar_root",
        "a string",
        "",
        "The directory of the repository with the pillar files; by default all of it.",
    ),
    option("git_pillar_ssl_verify", "a boolean", "True", "Whether certificates of `https://` remotes are verified."),
    option("git_pillar_update_interval", "an integer", "60", "The number of seconds between two fetches of a remote."),
    option("git_pillar_user", "a string", "", "The user name for `https://` remotes."),
    option("gitfs_base", "a string", "master", "The branch or tag that is the environment `base`."),
    option(
        "gitfs_disable_saltenv_mapping",
        "a boolean",
        "False",
        "Whether only the environments in `gitfs_saltenv` exist, not one for each branch and tag.",
    ),
    option(
        "gitfs_mountpoint",
        "a string",
        "",
        "The `salt://` directory below which the files of a repository are served.",
    ),
    option("gitfs_password", "a string", "", "The password for `https://` remotes, with `gitfs_user`."),
    option("gitfs_privkey", "a path", "", "The private key for SSH remotes."),
    option(
        "gitfs_ref_types",
        "a list of strings",
        "[branch, tag, sha]",
        "The kinds of references that become environments.",
    ),
    option(
        "gitfs_remotes",
        "a list of URLs, each alone or as a key of its own options",
        "[]",
        "The repositories that are served.",
    ),
    option("gitfs_root", "a string", "", "The directory of the repository that is served; by default all of it."),
    option("gitfs_saltenv", "a list of one-key mappings", "[]", "Options by environment: `ref`, `root`, `mountpoint`."),
    option("gitfs_saltenv_blacklist", "a list of strings", "[]", "Globs of environments that are not served."),
    option("gitfs_saltenv_whitelist", "a list of strings", "[]", "Globs of the only environments that are served."),
    option("gitfs_ssl_verify", "a boolean", "True", "Whether certificates of `https://` remotes are verified."),
    option("gitfs_user", "a string", "", "The user name for `https://` remotes."),
    option(
        "hash_type",
        "a string",
        "sha256",
        "The hash function of file hashes: md5, sha1, sha224, sha256, sha384 or sha512.",
    ),
    option("include", "a list of strings", "[]", "Globs of further configuration files, read after the drop-ins."),
    option(
        "mine_functions",
        "a mapping, or a list of functions",
        "{}",
        "The functions whose results are sent to the mine.",
    ),
    option("output_indent", "an integer, or pretty", "4", "The indentation of JSON and YAML output."),
    option("pillar_mask_output", "a boolean", "True", "Whether `pillar.items` masks values."),
    option(
        "pillarenv_from_saltenv",
        "a boolean",
        "False",
        "Whether the pillar environment follows the environment of a state run.",
    ),
    option(
        "schedule_returner",
        "a string or a list of strings",
        "[]",
        "Returners that store the results of all scheduled jobs.",
    ),
    option(
        "state_compress_ids",
        "a boolean",
        "False",
        "Whether the highstate outputter merges states of one id with equal results.",
    ),
    option(
        "state_output_diff",
        "a boolean",
        "False",
        "Whether the highstate outputter shows only states with changes and failures.",
    ),
    option(
        "state_output_exclude",
        "a list of True, False and None",
        "[]",
        "The results that `state_output: filter` hides.",
    ),
    option("state_output_pct", "a boolean", "False", "Whether the summary of the highstate outputter has percentages."),
    option(
        "state_output_profile",
        "a boolean",
        "True",
        "Whether the highstate outputter shows start times and durations.",
    ),
    option(
        "state_output_terse",
        "a list of True, False and None",
        "[]",
        "The results that `state_output: filter` shows on one line.",
    ),
    option(
        "state_queue",
        "True, False or an integer",
        "False",
        "Whether a state run waits for a running one instead of failing, or the number that may wait.",
    ),
    option("state_tabular", "a boolean", "False", "Whether the highstate outputter shows terse states as a table."),
    option(
        "top_file_merging_strategy",
        "a string",
        "merge",
        "How the top files of several environments are merged; read by masterless minions, too.",
    ),
];
