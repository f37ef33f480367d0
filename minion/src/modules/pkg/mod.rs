//! `pkg`: the packages of this host.
//!
//! [`Packages`] is what a package manager can do; [`Apt`] is Debian's. What a program wrote is read by
//! functions of their own, so that they can be tried without changing the machine. `repositories.rs` and `sources.rs`
//! are about where packages come from.

mod holds;
mod repositories;
mod sources;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use brine_core::function::CallError;
use brine_core::{Map, Value, functions, map};

use super::programs::{argument, run};
use super::user::names;
use crate::context::Context;
use crate::process::Output;

pub use holds::{FUNCTIONS as HOLDS, selections};
pub use repositories::{FUNCTIONS as REPOSITORIES, combined, described};
pub use sources::Source;

/// Names and versions.
pub type Versions = BTreeMap<String, String>;

/// What a package manager can do.
pub trait Packages {
    /// The packages that are installed.
    fn installed(&self, context: &Context) -> Result<Versions, CallError>;
    /// The packages of which only configuration is left.
    fn left_over(&self, context: &Context) -> Result<Versions, CallError>;
    /// The versions that could be installed, of those packages that are known.
    fn candidates(&self, context: &Context, names: &[String]) -> Result<Versions, CallError>;
    /// The versions in the repositories, newest first. A package may have a version behind it (`name=1.*`).
    fn offered(&self, context: &Context, names: &[String]) -> Result<BTreeMap<String, Vec<String>>, CallError>;
    /// Installs packages, each with a version or the newest. What is held changes too, and is held again after that.
    fn install(
        &self,
        context: &Context,
        wanted: &[(String, Option<String>)],
        options: &InstallOptions,
    ) -> Result<Output, CallError>;
    /// The name and version of the package in a file.
    fn of_file(&self, context: &Context, path: &Path) -> Result<(String, String), CallError>;
    /// Installs packages that are files.
    fn install_files(&self, context: &Context, paths: &[&Path]) -> Result<Output, CallError>;
    /// The new versions that there are; with `dist` also those for which other packages must come or go.
    fn upgrades(&self, context: &Context, dist: bool) -> Result<Versions, CallError>;
    /// Installs all of these.
    fn upgrade(&self, context: &Context, dist: bool) -> Result<Output, CallError>;
    /// Removes packages, with `purge` their configuration too.
    fn remove(&self, context: &Context, names: &[String], purge: bool) -> Result<Output, CallError>;
    /// Asks the repositories what there is: by repository, whether that worked.
    fn refresh(&self, context: &Context) -> Result<Map, CallError>;
    /// Compares versions in the packages' order.
    fn compare(&self, context: &Context, a: &str, b: &str) -> Result<Ordering, CallError>;
}

/// How packages are installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallOptions {
    /// The release that they are from.
    pub fromrepo: Option<String>,
    /// Whether repositories that nobody has signed are good.
    pub skip_verify: bool,
    /// Whether what they recommend is installed too; if nothing is said, as apt is configured.
    pub install_recommends: Option<bool>,
    /// Whether only those that are there already get new versions.
    pub only_upgrade: bool,
    /// Whether files of the configuration that were changed by hand are replaced.
    pub force_conf_new: bool,
    /// Whether those that are there in their versions are installed once more.
    pub reinstall: bool,
}

impl InstallOptions {
    /// What a call or a state says.
    pub fn of(kwargs: &Map) -> Self {
        let is = |key: &str| kwargs.get(key).is_some_and(Value::is_truthy);
        let repo = ["fromrepo", "repo"].into_iter().find_map(|key| kwargs.get(key).filter(|repo| repo.is_truthy()));
        InstallOptions {
            fromrepo: repo.map(ToString::to_string),
            skip_verify: is("skip_verify"),
            install_recommends: kwargs.get("install_recommends").map(Value::is_truthy),
            only_upgrade: is("only_upgrade"),
            force_conf_new: is("force_conf_new"),
            reinstall: is("reinstall"),
        }
    }
}

/// Debian's package manager.
pub struct Apt;

/// The package manager of this host.
pub fn packages() -> &'static dyn Packages {
    &Apt
}

functions! {
    module "pkg", context Context;

    /// The version of a package, empty if it is not installed; of several, a mapping.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.version <package1> <package2>
    fn version(context, *args, **_kwargs) {
        let installed = packages().installed(context)?;
        Ok(by_name(&args, |name| installed.get(name).cloned().unwrap_or_default()))
    }

    /// The version that an installation would bring, empty if that is the one that is there.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.latest_version <package1> <package2>
    fn latest_version(context, *args, **kwargs) {
        if kwargs.get("refresh").is_some_and(Value::is_truthy) {
            packages().refresh(context)?;
        }
        let names: Vec<String> = args.iter().map(ToString::to_string).collect();
        let (candidates, installed) = (packages().candidates(context, &names)?, packages().installed(context)?);
        let newer = |name: &str| candidates.get(name).filter(|version| installed.get(name) != Some(version));
        Ok(by_name(&args, |name| newer(name).cloned().unwrap_or_default()))
    }

    /// Whether there is a newer version of a package.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.upgrade_available <package name>
    fn upgrade_available(context, name: String, **_kwargs) {
        Ok(latest_version(context, vec![name.into()], Map::new())?.is_truthy().into())
    }

    /// The new versions that there are, by package.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.list_upgrades
    fn list_upgrades(context, refresh: bool = true, dist_upgrade: bool = true, **_kwargs) {
        if refresh {
            packages().refresh(context)?;
        }
        let newer = packages().upgrades(context, dist_upgrade)?;
        Ok(Value::Map(newer.into_iter().map(|(name, version)| (name.into(), version.into())).collect()))
    }

    /// Brings all packages to their newest versions.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.upgrade
    fn upgrade(context, refresh: bool = true, dist_upgrade: bool = false, **_kwargs) {
        if refresh {
            packages().refresh(context)?;
        }
        let before = packages().installed(context)?;
        let output = packages().upgrade(context, dist_upgrade)?;
        let changes = changes(&before, &packages().installed(context)?);
        failure(context, &output, changes)
    }

    /// All packages that are installed, with their versions.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.list_pkgs
    fn list_pkgs(context, versions_as_list: bool = false, removed: bool = false, purge_desired: bool = false, **_kwargs) {
        let all = if removed || purge_desired { packages().left_over(context)? } else { packages().installed(context)? };
        let version = |version: String| if versions_as_list { Value::List(vec![version.into()]) } else { version.into() };
        Ok(Value::Map(all.into_iter().map(|(name, found)| (name.into(), version(found))).collect()))
    }

    /// Asks the repositories what there is.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.refresh_db
    fn refresh_db(context, **_kwargs) {
        Ok(packages().refresh(context)?.into())
    }

    /// Installs a package, or several by `pkgs`: names, or mappings of name to version.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.install <package name>
    fn install(context, name: Option<String> = None, refresh: bool = false, pkgs: Value = Value::Nil, version: Option<String> = None, **kwargs) {
        if refresh {
            packages().refresh(context)?;
        }
        if kwargs.get("sources").is_some_and(Value::is_truthy) {
            let told = "files of packages are installed by the state: salt-call state.single pkg.installed NAME sources=...";
            return Err(CallError::Execution(told.into()));
        }
        let wanted = wanted(name.as_deref(), &pkgs, version.as_deref())?;
        let before = packages().installed(context)?;
        let output = packages().install(context, &wanted, &InstallOptions::of(&kwargs))?;
        let changes = changes(&before, &packages().installed(context)?);
        failure(context, &output, changes)
    }

    /// Removes a package, or several by `pkgs`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.remove <package1>,<package2>,<package3>
    fn remove(context, name: Option<String> = None, pkgs: Value = Value::Nil, **_kwargs) {
        without(context, name, &pkgs, false)
    }

    /// Removes a package, or several by `pkgs`, with their configuration.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.purge <package1>,<package2>,<package3>
    fn purge(context, name: Option<String> = None, pkgs: Value = Value::Nil, **_kwargs) {
        without(context, name, &pkgs, true)
    }

    /// Compares versions: -1, 0 or 1.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.version_cmp '0.2.4-0ubuntu1' '0.2.4.1-0ubuntu1'
    fn version_cmp(context, pkg1: String, pkg2: String, **_kwargs) {
        Ok((packages().compare(context, &pkg1, &pkg2)? as i64).into())
    }
}

/// One name gives its value alone.
fn by_name(args: &[Value], value: impl Fn(&str) -> String) -> Value {
    match args {
        [] => "".into(),
        [one] => value(&one.to_string()).into(),
        several => several.iter().map(|name| (name.clone(), value(&name.to_string()).into())).collect::<Map>().into(),
    }
}

/// The packages that are asked for, with their versions.
pub fn wanted(
    name: Option<&str>,
    pkgs: &Value,
    version: Option<&str>,
) -> Result<Vec<(String, Option<String>)>, CallError> {
    let items = match pkgs {
        Value::Nil => {
            let version = version.filter(|version| !version.is_empty()).map(str::to_owned);
            let names: Vec<String> = name.into_iter().flat_map(|name| names(&name.into())).collect();
            let version = version.filter(|_| names.len() == 1);
            return names.into_iter().map(|name| Ok((argument(&name)?, version.clone()))).collect();
        }
        Value::List(items) => items.clone(),
        text => names(text).into_iter().map(Value::from).collect(),
    };
    let mut wanted = Vec::new();
    for item in &items {
        match item {
            Value::Map(map) => {
                for (name, version) in map {
                    let version = version.is_truthy().then(|| version.to_string());
                    wanted.push((argument(&name.to_string())?, version));
                }
            }
            name => wanted.push((argument(&name.to_string())?, None)),
        }
    }
    Ok(wanted)
}

fn without(context: &Context, name: Option<String>, pkgs: &Value, purge: bool) -> Result<Value, CallError> {
    let (before, left) = (packages().installed(context)?, packages().left_over(context)?);
    let names: Vec<String> = wanted(name.as_deref(), pkgs, None)?.into_iter().map(|(name, _)| name).collect();
    let there = |name: &String| before.contains_key(name) || (purge && left.contains_key(name));
    let names: Vec<String> = names.into_iter().filter(there).collect();
    if names.is_empty() {
        return Ok(Value::map());
    }
    let output = packages().remove(context, &names, purge)?;
    let removed = changes(&before, &packages().installed(context)?);
    if !purge {
        return failure(context, &output, removed);
    }
    let left_before: Map = changes(&left, &packages().left_over(context)?);
    failure(context, &output, map! {"installed" => removed, "removed" => left_before})
}

/// What differs between two lists of packages.
pub fn changes(before: &Versions, after: &Versions) -> Map {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let version = |versions: &Versions, name: &String| versions.get(name).cloned().unwrap_or_default();
    names
        .map(|name| (name, version(before, name), version(after, name)))
        .filter(|(_, old, new)| old != new)
        .map(|(name, old, new)| (name.into(), map! {"old" => old, "new" => new}.into()))
        .collect()
}

/// The changes, or what the program complained of together with them.
fn failure(context: &Context, output: &Output, changes: Map) -> Result<Value, CallError> {
    if output.retcode == 0 {
        return Ok(changes.into());
    }
    context.set_retcode(output.retcode);
    Err(CallError::Execution(problem("installing", &[complaints(output)])))
}

/// What went wrong with packages, as Salt tells it.
pub fn problem(doing: &str, errors: &[String]) -> String {
    let errors: Vec<String> = errors.iter().map(|error| format!("    - {}", error.replace('\n', "\n      "))).collect();
    format!("Problem encountered {doing} package(s). Additional info follows:\n\nerrors:\n{}", errors.join("\n"))
}

/// What apt complains of.
pub fn complaints(output: &Output) -> String {
    output.stderr.trim().to_owned()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const QUIET: &[(&str, &str)] = &[
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("APT_LISTBUGS_FRONTEND", "none"),
    ("UCF_FORCE_CONFFOLD", "1"),
];

const APT_INSTALL: &[&str] = &["apt-get", "-q", "-y"];

/// Files of the configuration that were changed by hand stay.
const APT_GET: &[&str] =
    &["apt-get", "-q", "-y", "-o", "DPkg::Options::=--force-confold", "-o", "DPkg::Options::=--force-confdef"];

impl Packages for Apt {
    fn installed(&self, context: &Context) -> Result<Versions, CallError> {
        dpkg_list(context, "installed")
    }

    fn left_over(&self, context: &Context) -> Result<Versions, CallError> {
        dpkg_list(context, "config-files")
    }

    fn candidates(&self, context: &Context, names: &[String]) -> Result<Versions, CallError> {
        let mut command = words(&["apt-cache", "-q", "policy"]);
        for name in names {
            command.push(argument(name)?);
        }
        Ok(policy(&run(context, &command, &[])?.stdout))
    }

    fn offered(&self, context: &Context, names: &[String]) -> Result<BTreeMap<String, Vec<String>>, CallError> {
        let mut command = words(&["apt-cache", "-q", "show"]);
        for name in names {
            command.push(argument(name)?);
        }
        Ok(shown(&run(context, &command, &[])?.stdout))
    }

    fn install(
        &self,
        context: &Context,
        wanted: &[(String, Option<String>)],
        options: &InstallOptions,
    ) -> Result<Output, CallError> {
        let held = selections(context, "*")?.shift_remove("hold").unwrap_or_default();
        let held: Vec<&String> = held.iter().filter(|held| wanted.iter().any(|(name, _)| name == *held)).collect();
        holds::set(context, &held, "install")?;
        let output = run(context, &install_command(wanted, options), QUIET);
        holds::set(context, &held, "hold")?;
        output
    }

    fn of_file(&self, context: &Context, path: &Path) -> Result<(String, String), CallError> {
        let path = path.display().to_string();
        let output = run(context, &words(&["dpkg-deb", "--showformat=${Package} ${Version}", "--show", &path]), &[])?;
        let told = || CallError::Execution(format!("{path} is no package: {}", output.stderr.trim()));
        let (name, version) = output.stdout.trim().split_once(' ').ok_or_else(told)?;
        Ok((name.to_owned(), version.to_owned()))
    }

    fn install_files(&self, context: &Context, paths: &[&Path]) -> Result<Output, CallError> {
        // As in Salt: what they need has to be there.
        let mut command = words(&["dpkg", "--force-confold", "--force-confdef", "--install"]);
        command.extend(paths.iter().map(|path| path.display().to_string()));
        run(context, &command, QUIET)
    }

    fn upgrades(&self, context: &Context, dist: bool) -> Result<Versions, CallError> {
        let command = words(&["apt-get", "--just-print", if dist { "dist-upgrade" } else { "upgrade" }]);
        Ok(planned(&run(context, &command, QUIET)?.stdout))
    }

    fn upgrade(&self, context: &Context, dist: bool) -> Result<Output, CallError> {
        let mut command = words(APT_GET);
        command.push(if dist { "dist-upgrade" } else { "upgrade" }.to_owned());
        run(context, &command, QUIET)
    }

    fn remove(&self, context: &Context, names: &[String], purge: bool) -> Result<Output, CallError> {
        let mut command = words(&["apt-get", "-q", "-y", if purge { "purge" } else { "remove" }]);
        command.extend_from_slice(names);
        run(context, &command, QUIET)
    }

    fn refresh(&self, context: &Context) -> Result<Map, CallError> {
        let output = run(context, &words(&["apt-get", "-q", "update"]), QUIET)?;
        if output.retcode != 0 {
            return Err(CallError::Execution(complaints(&output)));
        }
        Ok(refreshed(&output.stdout))
    }

    fn compare(&self, context: &Context, a: &str, b: &str) -> Result<Ordering, CallError> {
        for (operator, order) in [("lt", Ordering::Less), ("eq", Ordering::Equal), ("gt", Ordering::Greater)] {
            if run(context, &words(&["dpkg", "--compare-versions", a, operator, b]), &[])?.retcode == 0 {
                return Ok(order);
            }
        }
        Err(CallError::Execution(format!("the versions '{a}' and '{b}' cannot be compared")))
    }
}

fn dpkg_list(context: &Context, state: &str) -> Result<Versions, CallError> {
    let format = "--showformat=${Status} ${Package} ${Version} ${Architecture}\n";
    Ok(dpkg_lines(&run(context, &words(&["dpkg-query", format, "-W"]), &[])?.stdout, state))
}

/// The packages in a state, from lines such as `install ok installed bash 5.2.15-2+b8 amd64`.
fn dpkg_lines(text: &str, state: &str) -> Versions {
    let lines = text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, _, found, name, version, _] = fields[..] else { return None };
        (found == state).then(|| (name.to_owned(), version.to_owned()))
    });
    lines.collect()
}

/// The candidates that `apt-cache policy` tells.
fn policy(text: &str) -> Versions {
    let (mut found, mut name) = (Versions::new(), "");
    for line in text.lines() {
        if let Some(candidate) = line.strip_prefix("  Candidate: ") {
            if candidate != "(none)" {
                found.insert(name.to_owned(), candidate.to_owned());
            }
        } else if !line.starts_with(' ') {
            name = line.trim_end_matches(':');
        }
    }
    found
}

/// The versions that apt would install: lines such as `Inst bash [5.2-1] (5.2-2 Debian:12/stable [amd64])`.
fn planned(text: &str) -> Versions {
    let lines = text.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
        // What is not there yet is no new version of anything.
        let (_, new) = rest.strip_prefix('[')?.split_once("] (")?;
        Some((name.to_owned(), new.split(' ').next()?.to_owned()))
    });
    lines.collect()
}

/// The repositories that `apt-get update` has read: true for new, nothing for unchanged, false for
/// failed.
fn refreshed(text: &str) -> Map {
    let lines = text.lines().filter_map(|line| {
        let (word, rest) = line.split_once(' ')?;
        let result = match word.split(':').next()? {
            "Get" => Value::Bool(true),
            "Hit" => Value::Nil,
            "Err" | "Ign" => Value::Bool(false),
            _ => return None,
        };
        // The size is no part of the name.
        let name = rest.rsplit_once(" [").map_or(rest, |(name, _)| name);
        Some((name.trim().into(), result))
    });
    lines.collect()
}

fn install_command(wanted: &[(String, Option<String>)], options: &InstallOptions) -> Vec<String> {
    let mut command = words(if options.force_conf_new { APT_INSTALL } else { APT_GET });
    command.extend(
        options.force_conf_new.then(|| words(&["-o", "DPkg::Options::=--force-confnew"])).into_iter().flatten(),
    );
    command.extend(options.install_recommends.map(|recommends| {
        if recommends { "--install-recommends".to_owned() } else { "--no-install-recommends".to_owned() }
    }));
    command.extend(options.only_upgrade.then(|| "--only-upgrade".into()));
    command.extend(options.skip_verify.then(|| "--allow-unauthenticated".into()));
    command.extend(options.fromrepo.iter().flat_map(|repo| ["-t".to_owned(), repo.clone()]));
    if wanted.iter().any(|(_, version)| version.is_some()) {
        // A version that is said may be an older one.
        command.push("--allow-downgrades".into());
    }
    command.push("install".into());
    command.extend(options.reinstall.then(|| "--reinstall".into()));
    command.extend(wanted.iter().map(|(name, version)| match version.as_deref() {
        Some("latest") | None => name.clone(),
        Some(version) => format!("{name}={version}"),
    }));
    command
}

/// The versions that `apt-cache show` tells of, newest first.
fn shown(text: &str) -> BTreeMap<String, Vec<String>> {
    let (mut found, mut name) = (BTreeMap::<String, Vec<String>>::new(), "");
    for line in text.lines() {
        if let Some(package) = line.strip_prefix("Package: ") {
            name = package;
        } else if let Some(version) = line.strip_prefix("Version: ") {
            found.entry(name.to_owned()).or_default().push(version.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use brine_core::list;

    use super::*;

    #[test]
    fn dpkgs_list_is_read() {
        let text = "install ok installed bash 5.2.15-2+b8 amd64\ndeinstall ok config-files old 1.0 all\nhold ok installed held 2 all\nrubbish\n";
        let installed = dpkg_lines(text, "installed");
        assert_eq!(
            installed.into_iter().collect::<Vec<_>>(),
            [("bash".into(), "5.2.15-2+b8".into()), ("held".into(), "2".into())]
        );
        assert_eq!(dpkg_lines(text, "config-files").keys().collect::<Vec<_>>(), ["old"]);
    }

    #[test]
    fn apts_policy_is_read() {
        let text = "bash:\n  Installed: 5.2.15-2+b8\n  Candidate: 5.2.15-2+b13\n  Version table:\n     5.2.15-2+b13 500\nvirtual:\n  Installed: (none)\n  Candidate: (none)\n";
        assert_eq!(policy(text).into_iter().collect::<Vec<_>>(), [("bash".into(), "5.2.15-2+b13".into())]);
    }

    #[test]
    fn what_apt_would_do_is_read() {
        let text = "Inst bash [5.2-1] (5.2-2 Debian:12/stable [amd64])\nInst new (1.0 Debian:12 [amd64])\nConf bash (5.2-2 x)\n";
        assert_eq!(planned(text), Versions::from([("bash".into(), "5.2-2".into())]));
    }

    #[test]
    fn apts_update_is_read() {
        let text = "Hit:1 http://deb.debian.org/debian bookworm InRelease\nGet:2 http://deb.debian.org/debian bookworm-updates InRelease [55.4 kB]\nErr:3 http://x y\nReading package lists...\n";
        let expected = map! {
            "http://deb.debian.org/debian bookworm InRelease" => Value::Nil,
            "http://deb.debian.org/debian bookworm-updates InRelease" => true,
            "http://x y" => false,
        };
        assert_eq!(refreshed(text), expected);
    }

    #[test]
    fn packages_are_asked_for_in_many_ways() {
        let one = |name: &str, version: Option<&str>| (name.to_owned(), version.map(str::to_owned));
        for (name, pkgs, version, expected) in [
            (Some("a"), Value::Nil, None, vec![one("a", None)]),
            (Some("a"), Value::Nil, Some("1"), vec![one("a", Some("1"))]),
            (Some("a"), Value::Nil, Some("latest"), vec![one("a", Some("latest"))]),
            (Some("a,b"), Value::Nil, None, vec![one("a", None), one("b", None)]),
            (Some("x"), list!["a", map! {"b" => "2"}], None, vec![one("a", None), one("b", Some("2"))]),
            (None, list![], None, vec![]),
        ] {
            assert_eq!(wanted(name, &pkgs, version), Ok(expected), "{name:?} {pkgs}");
        }
        assert!(wanted(Some("--force"), &Value::Nil, None).is_err());
    }

    #[test]
    fn the_install_command_names_versions() {
        let wanted = [("a".to_owned(), None), ("b".to_owned(), Some("2-1".to_owned()))];
        insta::assert_snapshot!(install_command(&wanted, &InstallOptions::default()).join(" "), @r#"apt-get -q -y -o DPkg::Options::=--force-confold -o DPkg::Options::=--force-confdef --allow-downgrades install a b=2-1"#);
        let options = InstallOptions {
            fromrepo: Some("sid".into()),
            skip_verify: true,
            install_recommends: Some(false),
            only_upgrade: true,
            force_conf_new: true,
            reinstall: true,
        };
        let wanted = [("a".to_owned(), Some("latest".to_owned()))];
        insta::assert_snapshot!(install_command(&wanted[..], &options).join(" "), @"apt-get -q -y -o DPkg::Options::=--force-confnew --no-install-recommends --only-upgrade --allow-unauthenticated -t sid --allow-downgrades install --reinstall a");
    }

    #[test]
    fn changes_are_what_differs() {
        let of = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Versions>()
        };
        let told = changes(&of(&[("a", "1"), ("b", "1"), ("c", "1")]), &of(&[("a", "1"), ("b", "2"), ("d", "1")]));
        let expected = map! {
            "b" => map! {"old" => "1", "new" => "2"},
            "c" => map! {"old" => "1", "new" => ""},
            "d" => map! {"old" => "", "new" => "1"},
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn what_apt_complains_of_is_told() {
        let output = Output {
            pid: 1,
            retcode: 100,
            stdout: String::new(),
            stderr: "W: x\nE: Unable to locate package q".into(),
            timed_out: false,
        };
        let told = problem("installing", &[complaints(&output)]);
        assert!(told.ends_with("errors:\n    - W: x\n      E: Unable to locate package q"), "{told}");
        assert_eq!(
            shown("Package: a\nVersion: 2\n\nPackage: a\nVersion: 1\n"),
            BTreeMap::from([("a".to_owned(), vec!["2".to_owned(), "1".into()])])
        );
    }
}
