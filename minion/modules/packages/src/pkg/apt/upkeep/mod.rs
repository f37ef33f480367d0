//! `pkg` functions that are specific to apt: unneeded packages, downloaded packages, keys, and queries about packages
//! and files.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};
use jiff::Timestamp;

use super::{Apt, QUIET, debian, words};
use crate::pkg::install::changes;
use crate::pkg::manager::Packages as _;
use crate::pkg::options::{Options, is_true};

/// Execution functions of `pkg`.
pub static FUNCTIONS: Functions<Context> =
    registry!("pkg", [autoremove, get_repo_keys, list_downloaded, parse_arch, services_need_restart, show, which]);

/// The directory of downloaded packages, relative to the root directory.
const CACHE: &str = "var/cache/apt";

/// The maximum depth of the search for packages below [`CACHE`].
const MAX_DEPTH: usize = 8;

/// Remove packages that were installed as dependencies and are no longer needed, and return the changes. `purge` also
/// removes their configuration. With `list_only`, return their names and remove nothing.
///
/// CLI Example:
///
///     salt '*' pkg.autoremove
///     salt '*' pkg.autoremove list_only=True
#[function]
pub fn autoremove(
    context: &Context,
    /// Whether the packages are only listed.
    #[default(false)]
    list_only: bool,
    /// Whether configuration files are removed, too.
    #[default(false)]
    purge: bool,
) -> CallResult {
    debian(context, "autoremove")?;
    let command = |answer: &str| {
        let mut command = words(&["apt-get", answer]);
        command.extend(purge.then(|| "--purge".to_owned()));
        command.push("autoremove".to_owned());
        command
    };
    if list_only {
        let output = run(context, &command("--assume-no"), QUIET)?;
        return Ok(parse_autoremove(&output.stdout).into_iter().collect());
    }
    let before = Apt.installed(context, &Options::default())?;
    if context.is_test() {
        let output = run(context, &command("--assume-no"), QUIET)?;
        let version = |name: &String| before.get(name.trim_end_matches('*')).cloned().unwrap_or_default();
        let planned = parse_autoremove(&output.stdout);
        return Ok(planned
            .iter()
            .map(|name| (name.as_str().into(), map! {"old" => version(name), "new" => ""}.into()))
            .collect::<Map>()
            .into());
    }
    let output = run(context, &command("--assume-yes"), QUIET)?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("removing packages failed: {}", output.stderr)));
    }
    Ok(changes(&before, &Apt.installed(context, &Options::default())?).into())
}

/// Return the keys of repositories by their ids: of the directory `keydir`, or with `aptkey` those of the program
/// `apt-key` where it is installed.
///
/// CLI Example:
///
///     salt '*' pkg.get_repo_keys
///     salt '*' pkg.get_repo_keys keydir=/etc/apt/keyrings
#[function]
pub fn get_repo_keys(
    context: &Context,
    /// Whether the keyring of all repositories is used.
    #[default(true)]
    aptkey: bool,
    /// Directory of keys.
    keydir: Option<PathBuf>,
) -> CallResult {
    debian(context, "get_repo_keys")?;
    if aptkey && super::keys::has_apt_key() {
        let command = words(&[
            "apt-key",
            "adv",
            "--batch",
            "--list-public-keys",
            "--with-fingerprint",
            "--with-fingerprint",
            "--with-colons",
            "--fixed-list-mode",
        ]);
        return Ok(keys(&run(context, &command, QUIET)?.stdout).into());
    }
    let directory = keydir.unwrap_or_else(|| "/etc/apt/keyrings".into());
    if !directory.is_dir() {
        tracing::error!("the directory {} does not exist", directory.display());
        return Ok(false.into());
    }
    let mut keys_by_id = Map::new();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&directory).map_err(CallError::execution)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let file = argument(&file.to_string_lossy())?;
        let command = words(&["gpg", "--no-default-keyring", "--keyring", &file, "--list-keys", "--with-colons"]);
        keys_by_id.extend(keys(&run(context, &command, &[])?.stdout));
    }
    Ok(keys_by_id.into())
}

/// Return the downloaded packages in apt's cache, by name and version: path, size and time.
///
/// CLI Example:
///
///     salt '*' pkg.list_downloaded
#[function]
pub fn list_downloaded(
    context: &Context,
    /// Root directory.
    root: Option<PathBuf>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    debian(context, "list_downloaded")?;
    let mut packages = Map::new();
    for path in packages_below(&root.unwrap_or_else(|| "/".into()).join(CACHE), MAX_DEPTH) {
        let named: Value = path.to_string_lossy().into_owned().into();
        let about = context.call("lowpkg.bin_pkg_info", Args::positional([named.clone()]))?;
        let (Some(name), Some(version)) = (about.get("name"), about.get("version")) else { continue };
        let Ok(status) = path.metadata() else { continue };
        let changed = Timestamp::from_second(status.ctime()).map_err(CallError::execution)?;
        let about = map! {
            "path" => named, "size" => status.size(), "creation_date_time_t" => status.ctime(),
            "creation_date_time" => changed.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        };
        let versions = packages.entry(name.clone()).or_insert_with(Value::map);
        if let Value::Map(versions) = versions {
            versions.insert(version.clone(), about.into());
        }
    }
    Ok(packages.into())
}

/// Return the name and the architecture in the name of a package, such as `zsh:amd64`.
///
/// CLI Example:
///
///     salt '*' pkg.parse_arch zsh:amd64
#[function]
pub fn parse_arch(
    context: &Context,
    /// Name of the package.
    name: String,
) -> CallResult {
    debian(context, "parse_arch")?;
    let (name, arch) = name.rsplit_once(':').map_or((name.as_str(), None), |(name, arch)| (name, Some(arch)));
    Ok(map! {"name" => name, "arch" => arch}.into())
}

/// Return the services that use files of removed or upgraded packages, as the program `checkrestart` of the package
/// `debian-goodies` reports them.
///
/// CLI Example:
///
///     salt '*' pkg.services_need_restart
#[function]
pub fn services_need_restart(context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    debian(context, "services_need_restart")?;
    if context.minion.programs.find("checkrestart").is_none() {
        return Err(CallError::Execution(
            "'checkrestart' is needed. It is part of the 'debian-goodies' package which can be installed from official repositories."
                .into(),
        ));
    }
    let output = run(context, &words(&["checkrestart", "--machine", "--package"]), &[])?;
    let service = |line: &str| Some(line.strip_prefix("SERVICE:")?.split(',').next()?.to_owned());
    Ok(output.stdout.lines().filter_map(service).collect::<BTreeSet<String>>().into_iter().collect())
}

/// Return the metadata of packages in the repositories, by name and version. `filter` names the fields to return; with
/// `refresh` the lists of packages are fetched first.
///
/// CLI Example:
///
///     salt '*' pkg.show gawk
///     salt '*' pkg.show 'nginx-*' filter=description,provides
#[function]
pub fn show(
    context: &Context,
    /// Names of packages.
    #[rest]
    args: Vec<Value>,
    /// `filter`, the fields as a list or with commas, and `refresh`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    debian(context, "show")?;
    if kwargs.get("refresh").is_some_and(is_true) {
        context.call("pkg.refresh_db", Args::default())?;
    }
    if args.is_empty() {
        return Ok(Value::map());
    }
    let fields: Vec<String> = match kwargs.get("filter") {
        Some(Value::List(fields)) => fields.iter().map(|field| field.to_string().to_lowercase()).collect(),
        Some(fields) if fields.is_truthy() => {
            fields.to_string().to_lowercase().split(',').map(|field| field.trim().to_owned()).collect()
        }
        _ => Vec::new(),
    };
    let mut command = words(&["apt-cache", "show"]);
    for name in &args {
        command.push(argument(&name.to_string())?);
    }
    Ok(parse_show(&run(context, &command, QUIET)?.stdout, &fields).into())
}

/// Return the package that a file belongs to: nothing if there is none, False if the path is relative or does not exist.
///
/// CLI Example:
///
///     salt '*' pkg.which /usr/bin/apt
#[function]
pub fn which(
    context: &Context,
    /// Path of the file, or of the program.
    path: String,
) -> CallResult {
    debian(context, "which")?;
    if !Path::new(&path).is_absolute() || !Path::new(&path).exists() {
        tracing::debug!("{path} is relative or does not exist");
        return Ok(false.into());
    }
    let output = run(context, &words(&["dpkg", "-S", &path]), &[("LC_ALL", "C")])?;
    Ok(output.stdout.split_once(':').filter(|_| output.retcode == 0).map(|(package, _)| package.to_owned()).into())
}

/// Returns the packages that `apt-get autoremove` would remove.
fn parse_autoremove(text: &str) -> Vec<String> {
    let after = text.lines().skip_while(|line| !line.contains("The following packages will be REMOVED:")).skip(1);
    let mut names: Vec<String> =
        after.take_while(|line| line.starts_with(' ')).flat_map(str::split_whitespace).map(str::to_owned).collect();
    names.sort();
    names
}

/// Parses gpg's records with colons: keys by id, each with its last subkey.
fn keys(text: &str) -> Map {
    let mut keys: Vec<Map> = Vec::new();
    for line in text.lines() {
        let items: Vec<&str> = line.split(':').map(str::trim).collect();
        let item = |place: usize| match items.get(place) {
            None | Some(&"") => Value::Nil,
            Some(text) => text.parse::<i64>().map_or_else(|_| (*text).into(), Value::from),
        };
        let about = || {
            map! {
                "algorithm" => item(3), "bits" => item(2), "capability" => item(11), "date_creation" => item(5),
                "date_expiration" => item(6), "keyid" => items.get(4).copied().unwrap_or_default(),
                "validity" => item(1),
            }
        };
        match (items.first(), keys.last_mut()) {
            (Some(&"pub"), _) => keys.push(about()),
            (Some(&"sub"), Some(key)) => _ = key.insert("subkey".into(), about().into()),
            (Some(&"fpr"), Some(key)) => match key.get_mut("subkey") {
                Some(Value::Map(subkey)) => _ = subkey.insert("fingerprint".into(), item(9)),
                _ => _ = key.insert("fingerprint".into(), item(9)),
            },
            (Some(&"uid"), Some(key)) => _ = key.insert("uid".into(), item(9)),
            _ => {}
        }
    }
    keys.into_iter().filter_map(|key| Some((key.get("keyid")?.clone(), key.into()))).collect()
}

/// Returns the package files below a directory.
fn packages_below(directory: &Path, depth: usize) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => paths.extend(packages_below(&entry.path(), depth - 1)),
            Ok(kind) if kind.is_file() && entry.path().extension().is_some_and(|ending| ending == "deb") => {
                paths.push(entry.path());
            }
            _ => {}
        }
    }
    paths.sort();
    paths
}

/// Parses `apt-cache show`. Continuation lines are left out.
fn parse_show(text: &str, fields: &[String]) -> Map {
    let is_wanted = |name: &str| fields.is_empty() || fields.iter().any(|field| *field == name.to_lowercase());
    let mut packages = Map::new();
    for package in text.split("\n\n") {
        let mut about = Map::new();
        let (mut name, mut version) = (None, None);
        for (field, value) in package.lines().filter_map(|line| line.split_once(':')) {
            let (field, value) = (field.trim(), value.trim());
            match field {
                "Package" => name = Some(value),
                "Version" => version = Some(value),
                field if is_wanted(field) => _ = about.insert(field.into(), value.into()),
                _ => {}
            }
        }
        let (Some(name), Some(version)) = (name, version) else { continue };
        if let Value::Map(versions) = packages.entry(name.into()).or_insert_with(Value::map)
            && let Value::Map(entry) = versions.entry(version.into()).or_insert_with(Value::map)
        {
            entry.extend(about);
        }
    }
    packages
}

#[cfg(test)]
mod tests;
