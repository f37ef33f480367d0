//! Options of package operations, from the arguments of calls and states.

use brine_function::CallError;
use brine_function::arguments::names;
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
