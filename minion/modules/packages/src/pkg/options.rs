//! Options of package operations, from the arguments of calls and states.

use brine_function::arguments::names;
use brine_function::{CallError, Others, ParamList};
use brine_value::{FromValue, Map, Value};

/// Options of package operations; a manager ignores those it does not support.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Only use these repositories; for apt: this release.
    pub from: Vec<String>,
    /// Repositories that are enabled for this call.
    pub enable: Vec<String>,
    /// Repositories that are disabled for this call.
    pub disable: Vec<String>,
    /// `all`, `main` or a repository, whose `exclude` lines are ignored.
    pub disable_excludes: Option<String>,
    /// Branch of the repositories.
    pub branch: Option<String>,
    /// Settings of the manager, each as `key=value`.
    pub settings: Vec<String>,
    /// Root directory, instead of `/`.
    pub root: Option<String>,
    /// Whether signatures are not verified.
    pub skip_verify: bool,
    /// Whether installed packages are reinstalled.
    pub reinstall: bool,
    /// Whether versions are compared without their epochs; if unset, only if the given one has none.
    pub ignore_epoch: Option<bool>,
    /// Whether held packages are changed, too.
    pub update_holds: bool,
    /// Whether recommended packages are omitted, or installed.
    pub recommends: Option<bool>,
    /// Whether failing repositories are ignored.
    pub ignore_repo_failure: bool,
    /// Whether names may be capabilities that packages provide.
    pub capabilities: bool,
    /// Whether the repositories are refreshed even if they are current; the manager's default if unset.
    pub force: Option<bool>,
    /// Whether new signing keys of repositories are trusted.
    pub import_keys: bool,
    /// Repositories to refresh; all by default.
    pub repos: Vec<String>,
    /// Whether all packages are upgraded before others are installed.
    pub sysupgrade: bool,
    /// Whether only updates with fixes are installed.
    pub minimal: bool,
    /// Whether obsolete packages are kept.
    pub keep_obsolete: bool,
    /// Whether packages keep their vendors.
    pub keep_vendors: bool,
    /// Whether only installed packages are upgraded.
    pub only_upgrade: bool,
    /// Whether configuration files with local changes are replaced.
    pub force_conf_new: bool,
    /// Whether packages are downloaded and not installed.
    pub download_only: bool,
    /// Age in seconds up to which the lists of packages are not fetched again, with apt.
    pub cache_valid_time: u64,
    /// Whether an upgrade may install older versions.
    pub allow_downgrades: bool,
    /// Whether an upgrade is only simulated.
    pub dry_run: bool,
}

/// Whether an argument is true, also as a string.
pub fn is_true(value: &Value) -> bool {
    bool::from_value(value).unwrap_or_else(|| value.is_truthy())
}

impl Options {
    /// Reads the options from keyword arguments.
    pub fn read(args: &Map) -> Self {
        let value = |key: &str| args.get(key).filter(|value| value.is_truthy());
        let list = |key: &str| value(key).map(names).unwrap_or_default();
        let text = |key: &str| value(key).map(ToString::to_string);
        let flag = |key: &str| value(key).is_some_and(is_true);
        let choice = |key: &str| args.get(key).filter(|value| !value.is_nil()).map(is_true);
        let from = list("fromrepo");
        Options {
            from: if from.is_empty() { list("repo") } else { from },
            enable: list("enablerepo"),
            disable: list("disablerepo"),
            disable_excludes: text("disableexcludes"),
            branch: text("branch"),
            settings: list("setopt"),
            root: text("root"),
            skip_verify: flag("skip_verify"),
            reinstall: flag("reinstall"),
            ignore_epoch: choice("ignore_epoch"),
            update_holds: flag("update_holds"),
            recommends: choice("install_recommends").or_else(|| choice("no_recommends").map(|without| !without)),
            ignore_repo_failure: flag("ignore_repo_failure"),
            capabilities: flag("resolve_capabilities"),
            force: choice("force"),
            import_keys: flag("gpgautoimport"),
            repos: list("repos"),
            sysupgrade: flag("sysupgrade"),
            minimal: flag("minimal"),
            keep_obsolete: choice("obsoletes") == Some(false),
            keep_vendors: flag("novendorchange"),
            only_upgrade: flag("only_upgrade"),
            force_conf_new: flag("force_conf_new"),
            download_only: flag("downloadonly") || flag("download_only"),
            cache_valid_time: value("cache_valid_time").and_then(u64::from_value).unwrap_or_default(),
            allow_downgrades: flag("allow_downgrades"),
            dry_run: flag("dryrun"),
        }
    }

    /// Refuses a dry run, for a manager that would upgrade instead.
    ///
    /// # Errors
    /// A dry run is asked for.
    pub fn refuse_dry_run(&self, manager: &str) -> Result<(), CallError> {
        let message = format!("dryrun is not supported with {manager}: pkg.list_upgrades lists the upgrades");
        if self.dry_run { Err(CallError::Execution(message)) } else { Ok(()) }
    }

    /// Refuses only to download, for a manager that would install instead.
    ///
    /// # Errors
    /// Packages are only to be downloaded.
    pub fn refuse_download_only(&self, manager: &str) -> Result<(), CallError> {
        let message = format!("downloadonly is not supported with {manager}");
        if self.download_only { Err(CallError::Execution(message)) } else { Ok(()) }
    }
}

/// Describes the options of package managers that states pass on. A manager ignores those that it does not support.
pub(crate) fn further(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("version", "a string", "Version of the package.");
    params.further("pkgs", "a list", "Packages, or mappings of packages to versions, in the place of `name`.");
    params.further("sources", "a list", "Mappings of packages to files or URLs that they are installed from.");
    params.further("refresh", "True or False", "Whether the lists of packages are refreshed first.");
    params.further("hold", "True or False", "Whether the packages are held at their version afterwards.");
    params.further(
        "fromrepo",
        "a string",
        "Repositories to use, and no others, as a list or separated by commas; for apt the release, such as \
         `bookworm-backports`.",
    );
    params.further("repo", "a string", "Another name of `fromrepo`.");
    for name in ["enablerepo", "disablerepo"] {
        params.further(name, "a string", "Repositories that are enabled or disabled for this call, with dnf.");
    }
    params.further(
        "disableexcludes",
        "a string",
        "Whose `exclude` lines are ignored, with dnf: `all`, `main` or a repository.",
    );
    params.further("branch", "a string", "Branch of the repositories, with dnf.");
    params.further("setopt", "a list", "Settings of dnf for this call, each as `key=value`.");
    params.further("root", "a path", "Root directory in which packages are installed.");
    params.further("skip_verify", "True or False", "Whether signatures are not verified.");
    params.further("reinstall", "True or False", "Whether installed packages are installed again.");
    params.further("ignore_epoch", "True or False", "Whether versions are compared without their epochs.");
    params.further("update_holds", "True or False", "Whether held packages are changed, too, and held again.");
    params.further(
        "install_recommends",
        "True or False",
        "Whether recommended packages are installed, too; the manager decides by default.",
    );
    params.further("no_recommends", "True or False", "The opposite of `install_recommends`, with zypper.");
    params.further("ignore_repo_failure", "True or False", "Whether repositories that fail are ignored, with zypper.");
    params.further(
        "resolve_capabilities",
        "True or False",
        "Whether names may be capabilities that packages provide, with zypper.",
    );
    params.further("force", "True or False", "Whether the lists of packages are refreshed even if they are current.");
    params.further(
        "gpgautoimport",
        "True or False",
        "Whether new signing keys of repositories are trusted, with zypper.",
    );
    params.further("repos", "a list", "Repositories to refresh; all by default.");
    params.further(
        "sysupgrade",
        "True or False",
        "Whether all packages are upgraded before others are installed, with pacman.",
    );
    params.further("minimal", "True or False", "Whether only updates with fixes are installed, with dnf.");
    params.further("obsoletes", "True or False", "Whether obsolete packages are replaced, with dnf.");
    params.further("novendorchange", "True or False", "Whether packages keep their vendors, with zypper.");
    params.further("only_upgrade", "True or False", "Whether only installed packages are upgraded, with apt.");
    params.further(
        "force_conf_new",
        "True or False",
        "Whether configuration files with local changes are replaced, with apt.",
    );
    for name in ["downloadonly", "download_only"] {
        params.further(name, "True or False", "Whether packages are downloaded and not installed.");
    }
    params.further(
        "cache_valid_time",
        "an integer",
        "Age in seconds up to which the lists of packages are not fetched again, with apt.",
    );
    params.further("allow_downgrades", "True or False", "Whether an upgrade may install older versions, with apt.");
    params.further("allow_updates", "True or False", "Whether a newer version than the given one is accepted.");
    params.further("dryrun", "True or False", "Whether an upgrade is only simulated.");
    params.further("dist_upgrade", "True or False", "Whether packages may be installed or removed by an upgrade.");
    params.further("test", "True or False", "Whether the state only predicts its changes.");
    params.further("saltenv", "a string", "Environment of the file server for `sources`.");
    for name in ["debconf", "pkg_verify", "ignore_types"] {
        params.further(name, "a string", "Refused: what they do in Salt is not supported.");
    }
    for name in [
        "batch",
        "env",
        "extra_args",
        "extra_install_flags",
        "extra_uninstall_flags",
        "fetchonly",
        "get_extra_options",
        "normalize",
        "options",
        "quiet",
        "report_reboot_exit_codes",
        "skip",
        "skip_suggestions",
        "source",
        "split_arch",
        "timeout",
        "use_context",
        "verbose",
        "verify_ssl",
        "versions_as_list",
        "watch_flags",
        "with_origin",
        "force_yes",
        "include",
        "recurse",
        "removed",
        "attr",
        "diff_attr",
        "show_installed",
        "all_installed",
        "includes",
    ] {
        params.further(name, "anything", "Without effect.");
    }
    for name in [
        "admin_source",
        "advisory_ids",
        "check_update",
        "chroot",
        "current_zone_only",
        "cyg_arch",
        "full",
        "gem_bin",
        "glob",
        "include_casks",
        "include_components",
        "include_updates",
        "jail",
        "local",
        "mirrors",
        "orphan",
        "pcre",
        "purge_desired",
        "regex",
        "reinstall_requires",
        "ruby",
        "taps",
        "variant",
    ] {
        params.further(name, "anything", "Without effect: for other package managers.");
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn arguments_are_parsed_in_every_form() {
        let args = map! {
            "repo" => "base,updates", "enablerepo" => list!["a", "b"], "disablerepo" => "c", "skip_verify" => "True",
            "ignore_epoch" => false, "setopt" => "a=1,b=2", "install_recommends" => Value::Nil, "no_recommends" => true,
        };
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let expected = Options {
            from: words(&["base", "updates"]),
            enable: words(&["a", "b"]),
            disable: words(&["c"]),
            settings: words(&["a=1", "b=2"]),
            skip_verify: true,
            ignore_epoch: Some(false),
            recommends: Some(false),
            ..Options::default()
        };
        assert_eq!(Options::read(&args), expected);
        for (argument, is_set) in [("downloadonly", true), ("download_only", true), ("download", false)] {
            assert_eq!(Options::read(&map! {argument => true}).download_only, is_set, "{argument}");
        }
        assert!(Options::read(&map! {"dryrun" => true}).refuse_dry_run("dnf").is_err());
        assert!(Options::read(&map! {"dryrun" => false}).refuse_dry_run("dnf").is_ok());
        let chosen = Options::read(&map! {"fromrepo" => "x", "repo" => "y"});
        assert_eq!(chosen.from, ["x"]);
    }
}
