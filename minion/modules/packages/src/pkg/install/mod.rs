//! Changes of packages, shared by the functions of `pkg` and the states.

use brine_context::{Context, files};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_text::glob::{fnmatch, is_pattern};
use brine_value::{Map, Value, map};

use super::manager::{Desired, Operation, Packages, Removal, Upgrade, Versions, packages};
use super::options::{Options, is_true};
use super::versions::LATEST;
use brine_function::arguments::{names, parse_value, refuse};
use brine_modules_files::cmd::Scratch;

/// Execution functions of `pkg`.
pub static FUNCTIONS: Functions<Context> =
    registry!("pkg", [upgrade_all, refresh_db, install_some, remove_some, purge]);

/// The arguments that no manager supports.
const REFUSED: [(&str, &str); 2] =
    [("diff_attr", "changes have versions alone"), ("force_yes", "use skip_verify, allow_downgrades or update_holds")];

/// Upgrade all packages, or the named ones, to their newest versions. Accepts the options of `pkg.install`,
/// `allow_downgrades` and, with apt and zypper, `dryrun`.
///
/// CLI Example:
///
///     salt '*' pkg.upgrade
#[function(name = "upgrade")]
pub fn upgrade_all(
    context: &Context,
    /// Name of the package.
    name: Option<String>,
    /// Packages, or mappings of packages to versions, in the place of `name`.
    #[default]
    pkgs: Value,
    /// Whether the lists of packages are refreshed first.
    refresh: Option<bool>,
    /// Whether packages may be installed or removed by the upgrade.
    #[default(false)]
    dist_upgrade: bool,
    /// Options of the package manager, as in the state `pkg.installed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    refuse("pkg.upgrade", &kwargs, &REFUSED)?;
    let (packages, options) = (packages(context)?, Options::read(&kwargs));
    if refresh.unwrap_or_else(|| packages.refreshes()) {
        packages.refresh(context, &options)?;
    }
    let names: Vec<String> = requested(name.as_deref(), &pkgs, None)?.into_iter().map(|(name, _)| name).collect();
    report(context, packages, Operation::Upgrading, upgrade(context, packages, &names, dist_upgrade, &options)?)
}

/// Refresh the repositories. Returns the result by repository for apt and zypper, for dnf whether there are
/// updates.
///
/// CLI Example:
///
///     salt '*' pkg.refresh_db
#[function]
pub fn refresh_db(
    context: &Context,
    /// Options of the package manager, as in the state `pkg.installed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    packages(context)?.refresh(context, &Options::read(&kwargs))
}

/// Install a package, or several with `pkgs`: names, or mappings of name to version. A version may be a glob, or
/// conditions such as `>=1.2, <2`. `sources` is a list of mappings of a package to its file.
///
/// Accepts `fromrepo`, `enablerepo`, `disablerepo`, `disableexcludes`, `setopt`, `skip_verify`, `reinstall`,
/// `ignore_epoch`, `update_holds`, `only_upgrade`, `force_conf_new`, `install_recommends`, `downloadonly` and `root`, as
/// far as the package manager supports them; with apt `debconf`, a file of answers to the questions of packages, and
/// `cache_valid_time`, seconds for which the lists are current. `split_arch` is without effect.
///
/// CLI Example:
///
///     salt '*' pkg.install <package name>
///     salt '*' pkg.install pkgs='["foo", {"bar": ">=1.2"}]' enablerepo=epel
#[function(name = "install")]
pub fn install_some(
    context: &Context,
    /// Name of the package.
    name: Option<String>,
    /// Whether the lists of packages are refreshed first.
    #[default(false)]
    refresh: bool,
    /// Packages, or mappings of packages to versions, in the place of `name`.
    #[default]
    pkgs: Value,
    /// Mappings of packages to files or URLs that they are installed from.
    #[default]
    sources: Value,
    /// Version: one, a glob, conditions such as `>=1.2, <2`, or `latest`.
    version: Option<String>,
    /// Environment of the file server.
    #[default("base".to_owned())]
    saltenv: String,
    /// Options of the package manager, as in the state `pkg.installed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    refuse("pkg.install", &kwargs, &REFUSED)?;
    let (packages, options) = (packages(context)?, Options::read(&kwargs));
    if refresh {
        packages.refresh(context, &options)?;
    }
    if let Some(answers) = kwargs.get("debconf").filter(|path| path.is_truthy()) {
        context.call("debconf.set_file", Args::positional([answers.clone()]))?;
    }
    let doing = if options.reinstall { Operation::Reinstalling } else { Operation::Installing };
    let outcome = if sources.is_truthy() {
        let files = package_files(context, packages, named_files(&sources)?, &saltenv)?;
        install_files(context, packages, &files, &options)?
    } else {
        let normal = kwargs.get("normalize").is_none_or(is_true);
        let mut desired = requested(name.as_deref(), &pkgs, version.as_deref())?;
        for (name, version) in &mut desired {
            if normal {
                *name = packages.normal_name(context, name);
            }
            // The newest version is the default.
            version.take_if(|version| version == LATEST);
        }
        install(context, packages, &desired, &options)?
    };
    report(context, packages, doing, outcome)
}

/// The arguments of `pkg.remove` and `pkg.purge`.
#[derive(Args)]
pub struct RemoveArgs {
    /// Name of the package.
    name: Option<String>,
    /// Names of packages, as a list or with commas.
    #[default]
    pkgs: Value,
    /// Version of the package to remove.
    version: Option<String>,
    /// Options of the package manager. `split_arch` is without effect.
    #[keywords]
    kwargs: Map,
}

impl RemoveArgs {
    fn remove(&self, context: &Context, purge: bool) -> CallResult {
        let targets = requested(self.name.as_deref(), &self.pkgs, self.version.as_deref())?;
        without(context, &targets, purge, &self.kwargs)
    }
}

/// Remove a package, or several with `pkgs`.
///
/// CLI Example:
///
///     salt '*' pkg.remove <package1>,<package2>,<package3>
#[function(name = "remove")]
pub fn remove_some(context: &Context, #[args] args: RemoveArgs) -> CallResult {
    args.remove(context, false)
}

/// Remove a package, or several with `pkgs`, with their configuration; with pacman also their dependencies.
///
/// CLI Example:
///
///     salt '*' pkg.purge <package1>,<package2>,<package3>
#[function]
pub fn purge(context: &Context, #[args] args: RemoveArgs) -> CallResult {
    args.remove(context, true)
}

/// Changes, and error messages of the package manager.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Packages whose versions have changed.
    pub changes: Map,
    /// Error messages; none on success.
    pub errors: Vec<String>,
}

/// A package file.
pub struct PackageFile {
    /// The name of the package.
    pub name: String,
    /// Its version.
    pub version: String,
    file: Scratch,
}

/// Runs an operation, and returns the changes of installed packages.
fn observed(
    context: &Context,
    packages: &dyn Packages,
    options: &Options,
    work: impl FnOnce(&Versions) -> Result<Vec<String>, CallError>,
) -> Result<(Outcome, Versions), CallError> {
    let before = packages.installed(context, options)?;
    let errors = work(&before)?;
    let after = packages.installed(context, options)?;
    Ok((Outcome { changes: changes(&before, &after), errors }, before))
}

/// Installs packages.
pub fn install(
    context: &Context,
    packages: &dyn Packages,
    desired: &[Desired],
    options: &Options,
) -> Result<Outcome, CallError> {
    let (mut outcome, before) = observed(context, packages, options, |_| packages.install(context, desired, options))?;
    if options.reinstall && outcome.errors.is_empty() {
        for (name, _) in desired {
            // Reinstalled packages are reported, though their version is the same.
            if let Some(version) = before.get(name) {
                outcome.changes.entry(name.into()).or_insert_with(|| map! {"old" => version, "new" => version}.into());
            }
        }
    }
    Ok(outcome)
}

/// Installs package files.
pub fn install_files(
    context: &Context,
    packages: &dyn Packages,
    files: &[PackageFile],
    options: &Options,
) -> Result<Outcome, CallError> {
    let paths: Vec<_> = files.iter().map(|file| file.file.path()).collect();
    Ok(observed(context, packages, options, |_| packages.install_files(context, &paths, options))?.0)
}

/// Upgrades these packages, or all.
pub fn upgrade(
    context: &Context,
    packages: &dyn Packages,
    names: &[String],
    dist: bool,
    options: &Options,
) -> Result<Outcome, CallError> {
    Ok(observed(context, packages, options, |_| packages.upgrade(context, Upgrade { names, dist }, options))?.0)
}

/// Removes the packages that are installed; one with a version only if that version is installed. Names may be globs.
pub fn remove(
    context: &Context,
    packages: &dyn Packages,
    desired: &[Desired],
    purge: bool,
    options: &Options,
) -> Result<Outcome, CallError> {
    let left = if purge { packages.removed_with_configuration(context)? } else { Versions::new() };
    let work = |installed: &Versions| {
        let mut targets: Vec<Desired> = Vec::new();
        for (name, version) in desired {
            let fits = |package: &String| if is_pattern(name) { fnmatch(name, package) } else { package == name };
            let is_there =
                |have: &String| version.as_ref().is_none_or(|version| have.split(',').any(|one| one == version));
            let matches = installed.iter().filter(|(package, have)| fits(package) && is_there(have));
            let matches = matches.chain(left.iter().filter(|(package, _)| fits(package)));
            targets.extend(matches.map(|(package, _)| (package.clone(), version.clone())));
        }
        targets.dedup();
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        packages.remove(context, Removal { targets: &targets, purge }, options)
    };
    let (mut outcome, _) = observed(context, packages, options, work)?;
    // Where no configuration is left, a purge is reported as a removal.
    if purge && packages.keeps_configuration() {
        let left_changes = changes(&left, &packages.removed_with_configuration(context)?);
        outcome.changes = map! {"installed" => outcome.changes, "removed" => left_changes};
    }
    Ok(outcome)
}

fn without(context: &Context, desired: &[Desired], purge: bool, kwargs: &Map) -> Result<Value, CallError> {
    let packages = packages(context)?;
    report(context, packages, Operation::Removing, remove(context, packages, desired, purge, &Options::read(kwargs))?)
}

/// Returns the changes, or the errors of the package manager.
fn report(context: &Context, packages: &dyn Packages, doing: Operation, outcome: Outcome) -> Result<Value, CallError> {
    if outcome.errors.is_empty() {
        return Ok(outcome.changes.into());
    }
    context.set_retcode(1);
    Err(CallError::Execution(error_message_with_changes(packages, doing, &outcome)))
}

/// Returns the message on errors, where the changes are reported separately.
pub fn error_message(packages: &dyn Packages, doing: Operation, errors: &[String]) -> String {
    format!("{}. Additional info follows:\n\n{}", packages.problem(doing), listed(errors))
}

/// Returns the message on errors, with the changes made nevertheless.
pub fn error_message_with_changes(packages: &dyn Packages, doing: Operation, outcome: &Outcome) -> String {
    let (problem, changes, errors) = (packages.problem(doing), indented(&outcome.changes, 4), listed(&outcome.errors));
    format!("{problem}. Additional info follows:\n\nchanges:\n{changes}\n{errors}")
}

fn listed(errors: &[String]) -> String {
    // Continuation lines are indented below the first.
    let errors: Vec<String> = errors.iter().map(|error| format!("    - {}", error.replace('\n', "\n      "))).collect();
    format!("errors:\n{}", errors.join("\n"))
}

/// Formats a mapping as Salt's nested output does, in the order of its keys.
fn indented(map: &Map, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let mut lines = vec![format!("{margin}----------")];
    let mut entries: Vec<(String, &Value)> = map.iter().map(|(key, value)| (key.to_string(), value)).collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    for (key, value) in entries {
        lines.push(format!("{margin}{key}:"));
        lines.push(match value {
            Value::Map(map) => indented(map, indent + 4),
            other => format!("{margin}    {other}"),
        });
    }
    lines.join("\n")
}

/// Returns the requested packages with their versions.
pub fn requested(name: Option<&str>, pkgs: &Value, version: Option<&str>) -> Result<Vec<Desired>, CallError> {
    let items = match pkgs {
        Value::List(items) => items.clone(),
        nothing if !nothing.is_truthy() => {
            let version = version.filter(|version| !version.is_empty()).map(str::to_owned);
            let names: Vec<String> = name.into_iter().flat_map(|name| names(&name.into())).collect();
            let version = version.filter(|_| names.len() == 1);
            return names.into_iter().map(|name| Ok((argument(&name)?, version.clone()))).collect();
        }
        text => names(text).into_iter().map(Value::from).collect(),
    };
    let mut desired = Vec::new();
    for item in &items {
        match item {
            Value::Map(map) => {
                for (name, version) in map {
                    let version = version.is_truthy().then(|| version.to_string());
                    desired.push((argument(&name.to_string())?, version));
                }
            }
            // As rendered from a map.jinja without an entry for this system.
            Value::Nil => {
                return Err(CallError::execution(
                    "'pkgs' has an entry without a name: name the package, or leave it out",
                ));
            }
            name => desired.push((argument(&name.to_string())?, None)),
        }
    }
    Ok(desired)
}

/// Returns the names and paths of package files: a list of mappings, one mapping, or the text of either.
pub fn named_files(sources: &Value) -> Result<Vec<(String, String)>, CallError> {
    let wrong = || CallError::Execution("'sources' is a list of mappings of a package to its file".to_owned());
    let pairs = |map: &Map| map.iter().map(|(name, path)| (name.to_string(), path.to_string())).collect::<Vec<_>>();
    match sources {
        Value::Map(map) => Ok(pairs(map)),
        Value::List(items) => {
            let each = items.iter().map(|item| item.as_map().map(pairs).ok_or_else(wrong));
            Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
        }
        Value::Str(text) => match parse_value(text) {
            Value::Str(_) => Err(wrong()),
            parsed => named_files(&parsed),
        },
        _ => Err(wrong()),
    }
}

/// Fetches package files, and reads their metadata.
pub fn package_files(
    context: &Context,
    packages: &dyn Packages,
    named: Vec<(String, String)>,
    saltenv: &str,
) -> Result<Vec<PackageFile>, CallError> {
    let mut files = Vec::new();
    for (package, source) in named {
        let content = files::content(context, &source, saltenv).map_err(CallError::execution)?;
        let missing = || {
            CallError::Execution(if source.starts_with('/') {
                format!("{source} does not exist on minion")
            } else {
                format!("Unable to cache {source}: file not found")
            })
        };
        // Some managers only recognize a file by its extension.
        let ending = source.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
        let file = Scratch::ending(&content.ok_or_else(missing)?, None, ending)?;
        let (name, version) = packages.of_file(context, file.path())?;
        if name != package {
            return Err(CallError::Execution(format!("'{source}' is the package {name} and not {package}")));
        }
        files.push(PackageFile { name, version, file });
    }
    Ok(files)
}

/// Returns the differences of two lists of packages.
pub fn changes(before: &Versions, after: &Versions) -> Map {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let version = |versions: &Versions, name: &String| versions.get(name).cloned().unwrap_or_default();
    names
        .map(|name| (name, version(before, name), version(after, name)))
        .filter(|(_, old, new)| old != new)
        .map(|(name, old, new)| (name.into(), map! {"old" => old, "new" => new}.into()))
        .collect()
}

#[cfg(test)]
mod tests;
