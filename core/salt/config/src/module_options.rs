//! The options of modules, which are no fields of the configurations of master and minion.

/// An option of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleOption {
    /// The name.
    pub name: &'static str,
    /// The part of Brine that reads it.
    pub owner: &'static str,
    /// A description of the type of its value.
    pub expected: &'static str,
    /// Its default as written in YAML; empty if it has none.
    pub default: &'static str,
    /// The description, line by line.
    pub doc: &'static [&'static str],
}

/// Returns the options of modules, sorted by name.
pub fn module_options() -> Vec<&'static ModuleOption> {
    let mut all: Vec<_> = OPTIONS.iter().chain(GIT_PILLAR).chain(GITFS).collect();
    all.sort_by_key(|option| option.name);
    all
}

/// Returns the option of a module by its name.
pub(super) fn find(name: &str) -> Option<&'static ModuleOption> {
    OPTIONS.iter().chain(GIT_PILLAR).chain(GITFS).find(|option| option.name == name)
}

/// Declares options by owner, each with a description of its type, its Rust type, and its default in YAML and in Rust.
/// The name of an option that is not a Rust identifier follows `as`.
macro_rules! module_options {
    ($($owner:literal {
        $($(#[doc = $doc:literal])* $option:ident $(as $name:literal)?: $expected:literal $type:ty = $text:literal $default:expr,)*
    })*) => {
        /// The options that are read by [`opts`].
        const OPTIONS: &[ModuleOption] = &[$($(ModuleOption {
            name: $crate::options::name!($option $($name)?),
            owner: $owner,
            expected: $expected,
            default: $text,
            doc: &[$($doc),*],
        },)*)*];

        /// Reads single options of modules from `opts`.
        pub mod opts {
            use std::path::PathBuf;

            use brine_value::{Map, Value};

            $crate::options::readers! { $($($(#[doc = $doc])* $option $(as $name)?: $type = $default,)*)* }
        }
    };
}

module_options! {
    "configuration" {
        /// The configuration directory; set by Brine.
        config_dir: "a path" PathBuf = "" PathBuf::new(),
        /// The path of the main configuration file; set by Brine.
        conf_file: "a path" PathBuf = "" PathBuf::new(),
        /// Globs of drop-in files, relative to the configuration directory; by default `master.d/*.conf` or
        /// `minion.d/*.conf`.
        default_include: "a list of strings" Option<Vec<String>> = "" None,
        /// Globs of further configuration files, read after the drop-ins.
        include: "a list of strings" Vec<String> = "[]" Vec::new(),
    }
    "fileserver" {
        /// The file server backends in order of precedence: `roots`, `gitfs` (or `git`), `minionfs` (or `minion`), and custom ones.
        fileserver_backend: "a list of strings" Vec<String> = "[roots]" vec!["roots".into()],
        /// Whether only the environments in `gitfs_saltenv` exist, not one for each branch and tag.
        gitfs_disable_saltenv_mapping: "a boolean" bool = "False" false,
        /// The repositories that are served.
        gitfs_remotes: "a list of URLs, each alone or as a key of its own options" Value = "[]" Value::List(Vec::new()),
        /// Options by environment: `ref`, `root`, `mountpoint`.
        gitfs_saltenv: "a list of one-key mappings" Value = "[]" Value::List(Vec::new()),
        /// The ids of minions whose pushed files `minionfs` does not serve: ids, globs or regular expressions.
        minionfs_blacklist: "a list of strings" Vec<String> = "[]" Vec::new(),
        /// The environment of the files of `minionfs`.
        minionfs_env: "a string" String = "base" "base".into(),
        /// The directory of the file server below which `minionfs` has a directory for each minion; by default they are at
        /// the top.
        minionfs_mountpoint: "a string" String = "''" String::new(),
        /// The ids of the only minions whose pushed files `minionfs` serves: ids, globs or regular expressions.
        minionfs_whitelist: "a list of strings" Vec<String> = "[]" Vec::new(),
        /// The hash function of file hashes: md5, sha1, sha224, sha256, sha384 or sha512.
        hash_type: "a string" String = "sha256" "sha256".into(),
    }
    "pillar" {
        /// The names of external pillar sources that are left out.
        exclude_ext_pillar: "a list of strings" Vec<Value> = "[]" Vec::new(),
        /// Whether pillar files can include files of other remotes of the same environment.
        git_pillar_includes: "a boolean" bool = "True" true,
        /// Whether `pillar.items` masks values.
        pillar_mask_output: "a boolean" bool = "True" true,
        /// Whether the pillar environment follows the environment of a state run.
        pillarenv_from_saltenv: "a boolean" bool = "False" false,
    }
    "saltutil" {
        /// The names of modules that `saltutil.sync_*` leaves out, by type.
        extmod_blacklist: "a mapping of lists" Map = "{}" Map::new(),
        /// The names of the only modules that `saltutil.sync_*` copies, by type.
        extmod_whitelist: "a mapping of lists" Map = "{}" Map::new(),
    }
    "minion" {
        /// The command that restarts the minion for `minion.restart`, as a list of arguments.
        minion_restart_command: "a list of strings" Vec<String> = "[]" Vec::new(),
    }
    "executors" {
        /// The seconds over which the executor `splay` spreads jobs, if the job's `executor_opts` do not set them.
        splaytime: "a positive number" Value = "300" 300.into(),
    }
    "http" {
        /// The URL from which `http.update_ca_bundle` downloads certificate authorities.
        ca_bundle_url: "a string" Option<String> = "" None,
    }
    "x509" {
        /// The signing policies of certificates, by name; those of the pillar take precedence.
        x509_signing_policies: "a mapping of mappings or lists" Map = "{}" Map::new(),
    }
    "nacl" {
        /// The keys of `nacl`: `sk` or `sk_file`, `pk` or `pk_file`; and `box_type`, `sealedbox` or `secretbox`.
        nacl_config as "nacl.config": "a mapping" Map = "{}" Map::new(),
    }
    "saltcheck" {
        /// Whether results of `saltcheck` show the function, its arguments and the compared values.
        saltcheck_output_details: "a boolean" bool = "False" false,
        /// The directory with tests, in the directory of a state.
        saltcheck_test_location: "a path" String = "saltcheck-tests" "saltcheck-tests".into(),
    }
    "aliases" {
        /// The file with the mail aliases.
        aliases_file as "aliases.file": "a path" PathBuf = "/etc/aliases" "/etc/aliases".into(),
    }
    "hosts" {
        /// The file with the host names.
        hosts_file as "hosts.file": "a path" PathBuf = "/etc/hosts" "/etc/hosts".into(),
    }
    "service" {
        /// Whether `systemctl` runs in a scope of its own, which does not end with the minion's service.
        systemd_scope as "systemd.scope": "a boolean" Value = "True" Value::Bool(true),
    }
    "test" {
        /// The value that `test.conf_test` returns.
        test_foo as "test.foo": "any value" Value = "unconfigured" "unconfigured".into(),
    }
    "mine" {
        /// The functions whose results are sent to the mine.
        mine_functions: "a mapping, or a list of functions" Value = "{}" Value::Map(Map::new()),
    }
    "returners" {
        /// Returners that get the results of all jobs from the master, in addition to those of `--return`.
        default_returners as "return": "a string or a list of strings" Vec<String> = "[]" Vec::new(),
    }
    "schedule" {
        /// Returners that store the results of all scheduled jobs.
        schedule_returner: "a string or a list of strings" Vec<String> = "[]" Vec::new(),
    }
    "state" {
        /// The requisites that state runs ignore.
        disabled_requisites: "a list of strings" Vec<String> = "[]" Vec::new(),
        /// Whether a state run waits for a running one instead of failing, or the number that may wait.
        state_queue: "True, False or an integer" Value = "False" Value::Bool(false),
    }
    "outputters" {
        /// The indentation of JSON and YAML output.
        output_indent: "an integer, or pretty" Value = "4" 4.into(),
        /// Whether the highstate outputter merges states of one id with equal results.
        state_compress_ids: "a boolean" bool = "False" false,
        /// Whether the highstate outputter shows only states with changes and failures.
        state_output_diff: "a boolean" bool = "False" false,
        /// The results that `state_output: filter` hides.
        state_output_exclude: "a list of True, False and None" Vec<Value> = "[]" Vec::new(),
        /// Whether the summary of the highstate outputter has percentages.
        state_output_pct: "a boolean" bool = "False" false,
        /// Whether the highstate outputter shows start times and durations.
        state_output_profile: "a boolean" bool = "True" true,
        /// The results that `state_output: filter` shows on one line.
        state_output_terse: "a list of True, False and None" Vec<Value> = "[]" Vec::new(),
        /// Whether the highstate outputter shows terse states as a table; or the format of their lines, with the colour,
        /// name, module, function and result of the state, the end of the colour, and its return by keys as
        /// `{0}{4:7} {2}.{3} {1}{5} {6[duration]}`.
        state_tabular: "a boolean or a format" Value = "False" Value::Bool(false),
    }
}

/// Declares the options of remote repositories. Each remote can override them, under their names without the prefix.
macro_rules! git_options {
    ($prefix:literal, $owner:literal; $($option:literal: $expected:literal = $default:literal, $doc:literal;)*) => {
        &[
            git_options!(@one $prefix, $owner, "base", "a string", "master",
                "The branch or tag that is the environment `base`."),
            git_options!(@one $prefix, $owner, "depth", "a non-negative integer", "0",
                "The number of commits of each branch and tag that are fetched; 0 for all."),
            git_options!(@one $prefix, $owner, "fallback", "a string", "",
                "The branch or tag that replaces a missing one."),
            git_options!(@one $prefix, $owner, "insecure_auth", "a boolean", "False",
                "Whether passwords are sent to `http://` remotes, which do not encrypt them."),
            git_options!(@one $prefix, $owner, "passphrase", "a string", "",
                concat!("The passphrase of `", $prefix, "privkey`.")),
            git_options!(@one $prefix, $owner, "password", "a string", "",
                concat!("The password for `https://` remotes, with `", $prefix, "user`.")),
            git_options!(@one $prefix, $owner, "privkey", "a path", "", "The private key for SSH remotes."),
            git_options!(@one $prefix, $owner, "proxy", "a string", "",
                "The URL of the proxy for `http://` and `https://` remotes."),
            git_options!(@one $prefix, $owner, "pubkey", "a path", "",
                concat!("The public key for SSH remotes whose private key an SSH agent holds; not needed beside `",
                    $prefix, "privkey`.")),
            git_options!(@one $prefix, $owner, "refspecs", "a list of strings",
                "['+refs/heads/*:refs/remotes/origin/*', '+refs/tags/*:refs/tags/*']",
                "The references that are fetched, with destinations below `refs/remotes/origin/` for branches and \
                 `refs/tags/` for tags."),
            git_options!(@one $prefix, $owner, "ssl_verify", "a boolean", "True",
                "Whether certificates of `https://` remotes are verified."),
            git_options!(@one $prefix, $owner, "timeout", "a positive number of seconds", "1800",
                "The time after which a command of git is ended, such as the fetch of a remote that does not answer."),
            git_options!(@one $prefix, $owner, "user", "a string", "", "The user name for `https://` remotes."),
            $(git_options!(@one $prefix, $owner, $option, $expected, $default, $doc),)*
        ]
    };
    (@one $prefix:literal, $owner:literal, $option:literal, $expected:literal, $default:literal, $doc:expr) => {
        ModuleOption {
            name: concat!($prefix, $option),
            owner: $owner,
            expected: $expected,
            default: $default,
            doc: &[$doc],
        }
    };
}

/// The options of gitfs' remotes.
const GITFS: &[ModuleOption] = git_options! {
    "gitfs_", "fileserver";
    "mountpoint": "a string" = "", "The `salt://` directory below which the files of a repository are served.";
    "ref_types": "a list of strings" = "[branch, tag, sha]", "The kinds of references that become environments.";
    "root": "a string" = "", "The directory of the repository that is served; by default all of it.";
    "saltenv_blacklist": "a list of strings" = "[]", "Globs of environments that are not served.";
    "saltenv_whitelist": "a list of strings" = "[]", "Globs of the only environments that are served.";
};

/// The options of git_pillar's remotes.
const GIT_PILLAR: &[ModuleOption] = git_options! {
    "git_pillar_", "pillar";
    "branch": "a string" = "", "The branch of remotes without one; by default `git_pillar_base`.";
    "env": "a string" = "", "The environment of all remotes; by default the branch.";
    "mountpoint": "a string" = "", "The directory below which the files of a repository are mounted.";
    "ref_types": "a list of strings" = "[branch, tag, sha]", "The kinds of references that can be named.";
    "root": "a string" = "", "The directory of the repository with the pillar files; by default all of it.";
    "update_interval": "an integer" = "60", "The number of seconds between two fetches of a remote.";
};

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use brine_value::{Value, list, map};

    use super::*;

    #[test]
    fn no_option_is_declared_twice() {
        assert!(module_options().windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn an_option_has_its_default_where_none_of_its_type_is_set() {
        for (options, expected) in [
            (map! {}, "sha256"),
            (map! {"hash_type" => Value::Nil}, "sha256"),
            (map! {"hash_type" => list![]}, "sha256"),
            (map! {"hash_type" => "md5"}, "md5"),
        ] {
            assert_eq!(opts::hash_type(&options), expected, "{options:?}");
        }
        assert_eq!(opts::hosts_file(&map! {"hosts.file" => "/a"}), PathBuf::from("/a"));
        assert!(find("hosts.file").is_some());
    }
}
