//! `pkg` functions that query packages.

use std::collections::BTreeMap;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_text::glob::fnmatch;
use brine_value::{Map, Value, map};

use super::dpkg;
use super::manager::{Details, Installed, Listed, packages};
use super::options::{Options, is_true};
use super::rpm::{info, split_arch};
use super::versions::{compare, newer};
use brine_function::arguments::{names, refuse};

/// Execution functions of `pkg`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "pkg",
    [
        version,
        latest_version,
        available_version,
        upgrade_available,
        list_upgrades,
        list_pkgs,
        list_repo_pkgs,
        version_cmp,
        owner,
        file_list,
        file_dict,
        info_installed,
        normalize_name
    ]
);

/// Return the version of a package, an empty string if it is not installed; for several names or globs, a mapping.
///
/// CLI Example:
///
///     salt '*' pkg.version <package1> <package2>
#[function]
pub fn version(
    context: &Context,
    /// Names of packages.
    #[rest]
    args: Vec<Value>,
    /// `root`: directory of another system whose packages are read, where the package manager can do that.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let installed = packages(context)?.installed(context, &Options::read(&kwargs))?;
    if !args.iter().any(|name| name.to_string().contains('*')) {
        return Ok(by_name(&args, |name| installed.get(name).cloned().unwrap_or_default()));
    }
    let mut report = Map::new();
    for name in args.iter().map(ToString::to_string) {
        if name.contains('*') {
            let fitting = installed.iter().filter(|(package, _)| fnmatch(&name, package));
            report.extend(fitting.map(|(package, version)| (package.into(), version.into())));
        } else {
            let version = installed.get(&name).cloned().unwrap_or_default();
            report.insert(name.into(), version.into());
        }
    }
    Ok(report.into())
}

/// Return the version that an installation would bring, an empty string if that is the installed one. The
/// repositories are refreshed first, with pacman only with `refresh`.
///
/// CLI Example:
///
///     salt '*' pkg.latest_version <package1> <package2>
#[function]
pub fn latest_version(
    context: &Context,
    /// Names of packages.
    #[rest]
    args: Vec<Value>,
    /// Options of the package manager, as in the state `pkg.installed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let (packages, options) = (packages(context)?, Options::read(&kwargs));
    if kwargs.get("refresh").map_or_else(|| packages.refreshes(), is_true) {
        packages.refresh(context, &options)?;
    }
    let names: Vec<String> = args.iter().map(ToString::to_string).collect();
    let newer = newer(context, packages, &names, &options)?;
    Ok(by_name(&args, |name| newer.get(name).cloned().unwrap_or_default()))
}

/// Return the version that an installation would bring, as `pkg.latest_version`.
///
/// CLI Example:
///
///     salt '*' pkg.available_version <package1> <package2>
#[function]
pub fn available_version(
    context: &Context,
    /// Names of packages.
    #[rest]
    args: Vec<Value>,
    /// Options of the package manager, as in the state `pkg.installed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    latest_version(context, args, kwargs)
}

/// Return whether an upgrade of a package is available.
///
/// CLI Example:
///
///     salt '*' pkg.upgrade_available <package name>
#[function]
pub fn upgrade_available(
    context: &Context,
    /// Name of the package.
    name: String,
    /// Options of the package manager, as in the state `pkg.installed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(latest_version(context, vec![name.into()], kwargs)?.is_truthy().into())
}

/// Return the available upgrades by package. The repositories are refreshed first, with pacman only with `refresh`.
///
/// CLI Example:
///
///     salt '*' pkg.list_upgrades
#[function]
pub fn list_upgrades(
    context: &Context,
    /// Whether the lists of packages are refreshed first.
    refresh: Option<bool>,
    /// Whether packages may be installed or removed by the upgrade.
    #[default(true)]
    dist_upgrade: bool,
    /// Options of the package manager, as in the state `pkg.installed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let (packages, options) = (packages(context)?, Options::read(&kwargs));
    if refresh.unwrap_or_else(|| packages.refreshes()) {
        packages.refresh(context, &options)?;
    }
    let newer = packages.upgrades(context, dist_upgrade, &options)?;
    Ok(Value::Map(newer.into_iter().map(|(name, version)| (name.into(), version.into())).collect()))
}

/// Return the installed packages with their versions. `attr` is a list of `epoch`, `version`, `release`, `arch`,
/// `install_date` and `install_date_time_t`, or `all`; dnf and zypper return these attributes, too.
///
/// CLI Example:
///
///     salt '*' pkg.list_pkgs
///     salt '*' pkg.list_pkgs attr=version,arch
#[function]
pub fn list_pkgs(
    context: &Context,
    /// Whether all versions of a package are returned, as a list.
    #[default(false)]
    versions_as_list: bool,
    /// Whether removed packages with configuration files are listed.
    #[default(false)]
    removed: bool,
    /// Whether packages that are to be purged are listed.
    #[default(false)]
    purge_desired: bool,
    /// `attr`: attributes that are returned in place of versions.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    refuse("pkg.list_pkgs", &kwargs, &[("includes", "only packages are listed")])?;
    let packages = packages(context)?;
    let listed: Listed = if removed || purge_desired {
        let left = packages.removed_with_configuration(context)?.into_iter();
        left.map(|(name, version)| (name, vec![version.as_str().into()])).collect()
    } else {
        packages.list(context, &Options::read(&kwargs))?
    };
    if let Some(attr) = kwargs.get("attr").filter(|attr| attr.is_truthy()) {
        return Ok(with_details(listed, &names(attr)).into());
    }
    let report = listed.into_iter().map(|(name, versions)| {
        let versions: Vec<String> = versions.into_iter().map(|installed| installed.version).collect();
        (name.into(), if versions_as_list { versions.into() } else { versions.join(",").into() })
    });
    Ok(Value::Map(report.collect()))
}

/// Return all versions of packages in the repositories, newest first. `cacheonly` is without effect.
///
/// CLI Example:
///
///     salt '*' pkg.list_repo_pkgs <package1> <package2>
#[function]
pub fn list_repo_pkgs(
    context: &Context,
    /// Names of packages.
    #[rest]
    args: Vec<Value>,
    /// `fromrepo`, `enablerepo` and `disablerepo`: repositories, as lists or with commas.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let refused = [("byrepo", "fromrepo selects one repository")];
    refuse("pkg.list_repo_pkgs", &kwargs, &refused)?;
    let (packages, options) = (packages(context)?, Options::read(&kwargs));
    let mut report = Map::new();
    for name in args.iter().map(ToString::to_string) {
        let versions = packages.available(context, &name, &options)?;
        if !versions.is_empty() {
            report.insert(name.into(), versions.into());
        }
    }
    Ok(report.into())
}

/// Compare two versions, and return -1, 0 or 1.
///
/// CLI Example:
///
///     salt '*' pkg.version_cmp '0.2.4-0ubuntu1' '0.2.4.1-0ubuntu1'
#[function]
pub fn version_cmp(
    context: &Context,
    /// First version.
    pkg1: String,
    /// Second version.
    pkg2: String,
    /// Whether versions are compared without their epochs.
    #[default(false)]
    ignore_epoch: bool,
    #[keywords] _kwargs: Map,
) -> CallResult {
    Ok((compare(context, packages(context)?, (&pkg1, &pkg2), ignore_epoch)? as i64).into())
}

/// Return the package that owns a file, an empty string if there is none; for several files, a mapping.
///
/// CLI Example:
///
///     salt '*' pkg.owner /usr/bin/apachectl
#[function]
pub fn owner(
    context: &Context,
    /// Paths of files.
    #[rest]
    args: Vec<Value>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let packages = packages(context)?;
    let mut owners = BTreeMap::new();
    for path in args.iter().map(ToString::to_string) {
        let owner = packages.owner(context, &path)?;
        owners.insert(path, owner);
    }
    Ok(by_name(&args, |path| owners.get(path).cloned().unwrap_or_default()))
}

/// Return the files of packages, or of all packages, and errors.
///
/// CLI Example:
///
///     salt '*' pkg.file_list httpd
#[function]
pub fn file_list(
    context: &Context,
    /// Names of packages.
    #[rest]
    args: Vec<Value>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let names: Vec<String> = args.iter().map(ToString::to_string).collect();
    let listing = packages(context)?.files(context, &names)?;
    Ok(map! {"errors" => listing.errors, "files" => listing.files}.into())
}

/// Return the files of packages, or of all packages, by package, and errors.
///
/// CLI Example:
///
///     salt '*' pkg.file_dict httpd
#[function]
pub fn file_dict(
    context: &Context,
    /// Names of packages.
    #[rest]
    args: Vec<Value>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let manager = packages(context)?;
    if context.os_family() == "Debian" {
        // As in Salt, one unknown package fails the call.
        return context.call("lowpkg.file_dict", Args { positional: args, keyword: Map::new() });
    }
    let names: Vec<String> = match &args[..] {
        [] => manager.list(context, &Options::default())?.into_keys().collect(),
        names => names.iter().map(ToString::to_string).collect(),
    };
    let (mut errors, mut files_by_package) = (Vec::new(), Map::new());
    for name in names {
        let of_package = manager.files(context, std::slice::from_ref(&name))?;
        if of_package.errors.is_empty() {
            files_by_package.insert(name.into(), of_package.files.into());
        }
        errors.extend(of_package.errors);
    }
    Ok(map! {"errors" => errors, "packages" => files_by_package}.into())
}

/// Return the attributes of all or some installed packages, such as version, architecture, vendor, description and
/// licenses. Available with dpkg and rpm.
///
/// failhard
///     With dpkg: whether an unknown package is an error.
/// attr
///     With rpm: the attributes, separated by commas, such as `version,vendor,size`.
/// all_versions
///     With rpm: whether all installed versions of a package are returned, as a list.
///
/// CLI Example:
///
///     salt '*' pkg.info_installed <package1> <package2>
///     salt '*' pkg.info_installed <package1> failhard=false
#[function]
pub fn info_installed(
    context: &Context,
    /// Names of packages.
    #[rest]
    args: Vec<Value>,
    /// `failhard`, with dpkg; `attr` and `all_versions`, with rpm.
    #[keywords]
    mut kwargs: Map,
) -> CallResult {
    kwargs.retain(|key, _| !key.as_str().is_some_and(|key| key.starts_with("__")));
    if packages(context)?.is_rpm() {
        let described = info::described(context, &info::InfoQuery::read(&args, &kwargs))?;
        return Ok(described.into_iter().map(|(name, about)| (name, common(about))).collect::<Map>().into());
    }
    let failhard = kwargs.shift_remove("failhard").is_none_or(|fails| fails.is_truthy());
    if let Some((unknown, _)) = kwargs.first() {
        return Err(CallError::Execution(format!("'{unknown}' is an invalid keyword argument for this function")));
    }
    let names: Vec<String> = args.iter().map(ToString::to_string).collect();
    let mut report = Map::new();
    for (name, about) in dpkg::described(context, &names, failhard)? {
        let Value::Map(about) = about else { continue };
        // The second letter of the status is the state.
        let status = about.get("status").map_or_else(|| "ii".to_owned(), ToString::to_string);
        if status.chars().nth(1) != Some('i') {
            continue;
        }
        let renamed = about.into_iter().filter(|(key, _)| key.as_str() != Some("status")).map(|(key, value)| {
            let common = match key.as_str() {
                Some("package") => "name".into(),
                Some("origin") => "vendor".into(),
                Some("section") => "group".into(),
                Some("maintainer") => "packager".into(),
                Some("homepage") => "url".into(),
                _ => key,
            };
            (common, value)
        });
        report.insert(name, renamed.collect::<Map>().into());
    }
    Ok(report.into())
}

/// Renames rpm's attributes of a package to the names that all managers share.
fn common(about: Value) -> Value {
    match about {
        Value::List(versions) => versions.into_iter().map(common).collect(),
        Value::Map(about) => about
            .into_iter()
            .map(
                |(key, value)| if key.as_str() == Some("source_rpm") { ("source".into(), value) } else { (key, value) },
            )
            .collect::<Map>()
            .into(),
        other => other,
    }
}

/// Return the name of a package without its architecture, if that is the host's.
///
/// CLI Example:
///
///     salt '*' pkg.normalize_name zsh.x86_64
#[function]
pub fn normalize_name(
    context: &Context,
    /// Name of the package.
    name: String,
) -> CallResult {
    Ok(packages(context)?.normal_name(context, &name).into())
}

/// Returns the value itself for one name, a mapping for several.
fn by_name(args: &[Value], value: impl Fn(&str) -> String) -> Value {
    match args {
        [] => "".into(),
        [one] => value(&one.to_string()).into(),
        several => several.iter().map(|name| (name.clone(), value(&name.to_string()).into())).collect::<Map>().into(),
    }
}

/// Returns the packages with the requested attributes of each version; the version and architecture are always
/// included.
fn with_details(listed: Listed, attr: &[String]) -> Map {
    let mut report = Map::new();
    for (name, versions) in listed {
        // The architecture is an attribute, so the name is reported without it.
        let bare = split_arch(&name).map_or(name.as_str(), |(bare, _)| bare).to_owned();
        let mut all: Vec<Value> = versions.into_iter().map(|installed| attributes(installed, attr).into()).collect();
        match report.get_mut(&Value::from(bare.as_str())) {
            Some(Value::List(have)) => have.append(&mut all),
            _ => _ = report.insert(bare.into(), all.into()),
        }
    }
    report
}

fn attributes(installed: Installed, attr: &[String]) -> Map {
    let Some(Details { epoch, version, release, arch, installed: time }) = installed.details else {
        return map! {"version" => installed.version};
    };
    let date = time.and_then(|time| jiff::Timestamp::from_second(time).ok());
    let date = date.map(|date| date.strftime("%Y-%m-%dT%H:%M:%S+00:00Z").to_string());
    let all = map! {
        "epoch" => epoch, "version" => version, "release" => release, "arch" => arch, "install_date" => date,
        "install_date_time_t" => time,
    };
    let is_wanted = |key: &Value| {
        let key = key.to_string();
        ["version", "arch"].contains(&key.as_str()) || attr.iter().any(|name| *name == key || name == "all")
    };
    all.into_iter().filter(|(key, _)| is_wanted(key)).collect()
}
