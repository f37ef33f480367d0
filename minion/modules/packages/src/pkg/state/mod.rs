//! `pkg`: states of packages. `install.rs` installs packages and `sources.rs` files, `remove.rs` removes packages,
//! `upgrade.rs` upgrades them, `holds.rs` holds versions, `download.rs` downloads packages.

mod download;
mod groups;
mod holds;
mod install;
pub(crate) mod pkgrepo;
mod remove;
mod sources;
#[cfg(test)]
mod tests;
mod upgrade;

use std::sync::atomic::Ordering::Relaxed;

use brine_context::state_beacon::{BeaconArgs, StateBeacon};
use brine_context::{StateContext, StateReturn};
use brine_function::arguments::refuse;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_sls::compile::Chunk;
use brine_value::{Map, Value, list, map};

use crate::pkg::{Desired, Options, Packages, packages, requested};
use holds::{hold, unhold};

/// State functions of `pkg`.
pub static FUNCTIONS: Functions<StateContext> = registry!(
    "pkg",
    [
        installed,
        latest,
        uptodate,
        removed,
        purged,
        held,
        unheld,
        mod_watch,
        mod_beacon,
        download::downloaded,
        groups::group_installed,
        download::patch_installed,
        download::patch_downloaded
    ]
);

/// The beacon of a state.
const BEACON: StateBeacon<'_> = StateBeacon { state: "pkg", functions: &["installed", "removed"], module: "pkg" };

/// The arguments of `pkg.installed`.
#[derive(Args)]
pub struct InstalledArgs {
    /// Name of the package.
    name: String,
    /// Version: one, a glob, conditions such as `>=1.2, <2`, or `latest`.
    #[default]
    version: Value,
    /// Whether the repositories are refreshed first; by default once per job.
    refresh: Option<bool>,
    /// Packages, or mappings of packages to versions, in the place of `name`.
    #[default]
    pkgs: Value,
    /// Mappings of packages to files or URLs that they are installed from.
    #[default]
    sources: Value,
    /// Whether a newer version than the given one is accepted.
    #[default(false)]
    allow_updates: bool,
    /// Whether the packages are held at their version afterwards, or released; unchanged by default.
    hold: Option<bool>,
    /// Whether the architecture is removed from names, if it is that of the host.
    #[default(true)]
    normalize: bool,
    /// Further arguments: options of the package manager, such as `fromrepo`, `skip_verify`, `ignore_epoch`,
    /// `update_holds` and `reinstall`.
    #[keywords(crate::pkg::further)]
    kwargs: Map,
}

/// Ensure that a package, or several with `pkgs`, are installed, optionally in a version. `skip_suggestions` and
/// `report_reboot_exit_codes` are without effect.
///
/// A package that is installed in any version is left alone, unless a version is given. The lists of packages are
/// refreshed once in a run.
///
/// SLS Example:
///
///     nginx:
///       pkg.installed: []
///
///     base_packages:
///       pkg.installed:
///         - pkgs:
///           - curl
///           - git
///           - openssl: '>=3.0'
///         - refresh: True
///
///     postgresql-16:
///       pkg.installed:
///         - version: 16.*
///         - hold: True
///
///     app:
///       pkg.installed:
///         - sources:
///           - app: salt://packages/app_1.2_amd64.deb
#[function]
pub fn installed(context: &StateContext, #[args] args: InstalledArgs) -> CallResult {
    let name = &args.name;
    if args.pkgs.as_list().is_some_and(<[Value]>::is_empty) {
        return Ok(StateReturn::ok(name, "No packages to install provided").into());
    }
    let refused = [
        ("pkg_verify", "files of installed packages are not verified"),
        ("ignore_types", "files of installed packages are not verified"),
        ("verify_options", "files of installed packages are not verified"),
        ("debconf", "answer the questions of the packages by the state debconf.set_file, which this one requires"),
    ];
    refuse("pkg.installed", &args.kwargs, &refused)?;
    let (packages, options) = (packages(&context.call)?, Options::read(&args.kwargs));
    if args.sources.is_truthy() {
        if args.pkgs.is_truthy() {
            return Ok(StateReturn::failed(name, "Only one of \"pkgs\" and \"sources\" is permitted.").into());
        }
        return report(name, sources::install(context, packages, name, &args.sources, &options));
    }
    let desired = requested(Some(name), &args.pkgs, given(&args.version).as_deref())?;
    let desired = if args.normalize { normalized(context, packages, desired) } else { desired };
    let (refresh, hold, allow_updates) = (args.refresh, args.hold, args.allow_updates);
    report(
        name,
        install::install(
            context,
            packages,
            name,
            &desired,
            &install::InstallOptions { refresh, hold, allow_updates, options },
        ),
    )
}

/// Ensure that a package, or several with `pkgs`, are installed in their newest version. `watch_flags` and
/// `report_reboot_exit_codes` are without effect.
///
/// SLS Example:
///
///     openssl:
///       pkg.latest:
///         - refresh: True
///
///     tools:
///       pkg.latest:
///         - pkgs:
///           - curl
///           - git
#[function]
pub fn latest(
    context: &StateContext,
    /// Name of the package.
    name: String,
    /// Packages, in the place of `name`.
    #[default]
    pkgs: Value,
    /// Whether the lists of packages are refreshed first; by default once per run.
    refresh: Option<bool>,
    #[keywords(crate::pkg::further)] kwargs: Map,
) -> CallResult {
    if pkgs.as_list().is_some_and(<[Value]>::is_empty) {
        return Ok(StateReturn::ok(&name, "No packages to install provided").into());
    }
    let packages = packages(&context.call)?;
    let desired = normal(context, packages, requested(Some(&name), &pkgs, None)?, &kwargs);
    let names = upgrade::Names { all: desired.into_iter().map(|(name, _)| name).collect(), is_list: pkgs.is_truthy() };
    report(&name, upgrade::newest(context, packages, &name, &names, refresh, &Options::read(&kwargs)))
}

/// Ensure that all packages, or those in `pkgs`, have their newest available version.
///
/// SLS Example:
///
///     all_packages:
///       pkg.uptodate:
///         - refresh: True
#[function]
pub fn uptodate(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Whether the lists of packages are refreshed first.
    #[default(false)]
    refresh: bool,
    /// Packages to upgrade; all by default.
    #[default]
    pkgs: Value,
    /// Whether packages may be installed or removed by the upgrade.
    #[default(false)]
    dist_upgrade: bool,
    #[keywords(crate::pkg::further)] kwargs: Map,
) -> CallResult {
    let packages = packages(&context.call)?;
    report(
        &name,
        upgrade::upgrade_all(context, packages, &name, &pkgs, (refresh, dist_upgrade), &Options::read(&kwargs)),
    )
}

/// The arguments of `pkg.removed` and `pkg.purged`.
#[derive(Args)]
pub struct RemoveArgs {
    /// Version that must not be installed; any by default.
    #[default]
    version: Value,
    /// Packages, or mappings of packages to versions.
    #[default]
    pkgs: Value,
    /// Further arguments: options of the package manager.
    #[keywords(crate::pkg::further)]
    kwargs: Map,
}

impl RemoveArgs {
    fn remove(self, context: &StateContext, name: &str, purge: bool) -> CallResult {
        let packages = packages(&context.call)?;
        let desired = requested(Some(name), &self.pkgs, given(&self.version).as_deref())?;
        let desired = normal(context, packages, desired, &self.kwargs);
        report(name, remove::without(context, packages, name, &desired, purge, &Options::read(&self.kwargs)))
    }
}

/// Ensure that a package, or several with `pkgs`, are not installed; with a version, not in that version.
///
/// Configuration files stay where the package manager leaves them; `pkg.purged` removes them, too.
///
/// SLS Example:
///
///     telnet:
///       pkg.removed: []
///
///     unwanted:
///       pkg.removed:
///         - pkgs:
///           - nis
///           - rsh-client
#[function]
pub fn removed(
    context: &StateContext,
    /// Name of the package.
    name: String,
    #[args] args: RemoveArgs,
) -> CallResult {
    args.remove(context, &name, false)
}

/// Ensure that a package, or several with `pkgs`, are not installed, and that their configuration is removed.
///
/// SLS Example:
///
///     apache2:
///       pkg.purged: []
#[function]
pub fn purged(
    context: &StateContext,
    /// Name of the package.
    name: String,
    #[args] args: RemoveArgs,
) -> CallResult {
    args.remove(context, &name, true)
}

/// Ensure that a package, or several with `pkgs`, are held at their current version; with `replace`, release all
/// others.
///
/// SLS Example:
///
///     kernel_packages:
///       pkg.held:
///         - pkgs:
///           - linux-image-amd64
///           - linux-headers-amd64
#[function]
pub fn held(
    context: &StateContext,
    /// Name of the package.
    name: String,
    /// Version at which the package is held, with package managers that hold versions.
    #[default]
    version: Value,
    /// Packages, or mappings of packages to versions, in the place of `name`.
    #[default]
    pkgs: Value,
    /// Whether all other packages are released.
    #[default(false)]
    replace: bool,
    #[keywords(crate::pkg::further)] _kwargs: Map,
) -> CallResult {
    if pkgs.as_list().is_some_and(<[Value]>::is_empty) && !replace {
        return Ok(StateReturn::ok(&name, "No packages to be held provided").into());
    }
    let packages = packages(&context.call)?;
    report(&name, hold(context, packages, &name, &requested(Some(&name), &pkgs, given(&version).as_deref())?, replace))
}

/// Ensure that a package, or several with `pkgs`, are not held; with `all`, release every package.
///
/// SLS Example:
///
///     linux-image-amd64:
///       pkg.unheld: []
#[function]
pub fn unheld(
    context: &StateContext,
    /// Name of the package.
    name: String,
    /// Packages, in the place of `name`.
    #[default]
    pkgs: Value,
    /// Whether every held package is released.
    #[default(false)]
    all: bool,
    #[keywords(crate::pkg::further)] _kwargs: Map,
) -> CallResult {
    if pkgs.as_list().is_some_and(<[Value]>::is_empty) && !all {
        return Ok(StateReturn::ok(&name, "No packages to be unheld provided").into());
    }
    let (packages, desired) = (packages(&context.call)?, requested(Some(&name), &pkgs, None)?);
    report(&name, unhold(context, packages, &name, |held| all || desired.iter().any(|(package, _)| package == held)))
}

/// Run the state again when a watched state has changes.
///
/// SLS Example:
///
///     app:
///       pkg.latest:
///         - watch:
///           - pkgrepo: app_repository
///
///     app_repository:
///       pkgrepo.managed:
///         - name: deb https://apt.example.com/app stable main
#[function]
pub fn mod_watch(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// The arguments of the watching state, and `sfun`, its function.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    let sfun = kwargs.shift_remove("sfun").map(|sfun| sfun.to_string()).unwrap_or_default();
    kwargs.insert("name".into(), name.into());
    let states = &context.call.minion.states;
    states.call(context, &format!("pkg.{sfun}"), Args::keyword(kwargs))
}

/// Merges the packages of another state into this one, to call the package manager once instead of twice.
pub(crate) fn aggregate(chunk: &mut Chunk, other: &Chunk) -> bool {
    let same = |key: &str| chunk.args.get(key) == other.args.get(key);
    let together = ["installed", "latest", "removed", "purged"].contains(&chunk.fun.as_str())
        && chunk.fun == other.fun
        && same("fromrepo")
        && same("refresh")
        // States with holds or files are not merged.
        && ![&*chunk, other].iter().any(|chunk| chunk.args.contains_key("hold") || chunk.args.contains_key("sources"));
    if together {
        let mut all = named(chunk);
        for package in named(other) {
            if !all.contains(&package) {
                all.push(package);
            }
        }
        chunk.args.shift_remove("version");
        chunk.args.insert("pkgs".into(), all.into());
    }
    together
}

/// Returns the given version; `None` without one, or with `version: False`.
fn given(version: &Value) -> Option<String> {
    version.is_truthy().then(|| version.to_string())
}

/// Returns the packages of a state as a list: `pkgs`, or its name with its version.
fn named(chunk: &Chunk) -> Vec<Value> {
    match (chunk.args.get("pkgs"), chunk.args.get("version")) {
        (Some(Value::List(packages)), _) => packages.clone(),
        (_, Some(version)) if version.is_truthy() => vec![map! {chunk.name.as_str() => version.clone()}.into()],
        _ => vec![chunk.name.as_str().into()],
    }
}

/// Converts an error of running a program to a failed state.
fn report(name: &str, result: Result<StateReturn, CallError>) -> Result<Value, CallError> {
    match result {
        Ok(outcome) => Ok(outcome.into()),
        Err(CallError::Execution(message)) => Ok(StateReturn::failed(name, message).into()),
        Err(error) => Err(error),
    }
}

/// Returns the error of an operation that could not begin, in a state's wording.
fn failed_to_begin(doing: &str, error: CallError) -> CallError {
    match error {
        CallError::Execution(message) => {
            CallError::Execution(format!("An error was encountered while {doing} package(s): {message}"))
        }
        error => error,
    }
}

/// Removes the host's architecture from names, unless names are to be left unchanged.
fn normal(context: &StateContext, packages: &dyn Packages, desired: Vec<Desired>, kwargs: &Map) -> Vec<Desired> {
    let is_off = kwargs.get("normalize").is_some_and(|normalize| !normalize.is_truthy());
    if is_off { desired } else { normalized(context, packages, desired) }
}

fn normalized(context: &StateContext, packages: &dyn Packages, desired: Vec<Desired>) -> Vec<Desired> {
    desired.into_iter().map(|(name, version)| (packages.normal_name(&context.call, &name), version)).collect()
}

/// Whether a version is among the installed ones of a package.
fn has_version(have: Option<&String>, version: &str) -> bool {
    have.is_some_and(|have| have.split(',').any(|one| one == version))
}

/// Refreshes the repositories, if the state requests it or, by default, once per job.
fn refresh(
    context: &StateContext,
    packages: &dyn Packages,
    choice: Option<bool>,
    options: &Options,
) -> Result<(), CallError> {
    let asked = &context.call.job.repositories_asked;
    if choice.unwrap_or_else(|| !asked.load(Relaxed)) {
        packages.refresh(&context.call, options)?;
        asked.store(true, Relaxed);
    }
    Ok(())
}

/// Configure a beacon for a state with `beacon: True`, at the end of the run: events for upgrades of its packages.
///
/// SLS Example:
///
///     openssl:
///       pkg.installed:
///         - beacon: True
#[function]
pub fn mod_beacon(
    context: &StateContext,
    #[args] args: BeaconArgs,
    /// Packages of the state; its name by default.
    #[default]
    pkgs: Value,
    /// The arguments of the state, among them `beacon_data`, the options of the beacon.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    let pkgs = if pkgs.is_nil() { list![args.name.as_str()] } else { pkgs };
    BEACON.configure(context, &args, map! {"pkgs" => pkgs})
}
