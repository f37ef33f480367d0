//! States of downloaded packages, and of patches, which no supported package manager has.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, function};
use brine_value::{Map, Value};

use super::{failed_to_begin, given, normalized, report};
use crate::pkg::state::install::list;
use crate::pkg::{
    Desired, Operation, Options, Packages, Versions, error_message, install as put, packages, requested, satisfies,
};

/// Ensure that a package, or several with `pkgs`, are in the cache of the package manager, and not that they are
/// installed. On systems with apt.
///
/// SLS Example:
///
///     linux-image-amd64:
///       pkg.downloaded: []
#[function]
pub fn downloaded(
    context: &StateContext,
    /// Name of the package.
    name: String,
    /// Version of the package.
    #[default]
    version: Value,
    /// Packages, or mappings of packages to versions, in the place of `name`.
    #[default]
    pkgs: Value,
    #[keywords(crate::pkg::further)] kwargs: Map,
) -> CallResult {
    if context.call.os_family() != "Debian" {
        return Ok(absent(&name, "The pkg.downloaded state is not available on this platform"));
    }
    if pkgs.as_list().is_some_and(<[Value]>::is_empty) {
        return Ok(StateReturn::ok(&name, "No packages to download provided").into());
    }
    let packages = packages(&context.call)?;
    let options = Options { download_only: true, ..Options::read(&kwargs) };
    let desired = requested(Some(&name), &pkgs, given(&version).as_deref())?;
    let desired = normalized(context, packages, desired);
    let have = || {
        let listing = context.call.call("pkg.list_downloaded", Args::default())?;
        let versions = |versions: &Value| {
            let versions = versions.as_map().into_iter().flat_map(Map::keys).map(ToString::to_string);
            versions.collect::<Vec<_>>().join(",")
        };
        let entries = listing.as_map().into_iter().flatten();
        Ok(entries.map(|(name, about)| (name.to_string(), versions(about))).collect())
    };
    report(&name, download(context, packages, &name, &desired, &options, &have))
}

/// Downloads the packages that are not among the downloaded ones, which `have` returns.
pub(super) fn download(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    desired: &[Desired],
    options: &Options,
    have: &dyn Fn() -> Result<Versions, CallError>,
) -> Result<StateReturn, CallError> {
    let missing = |have: &Versions| -> Result<Vec<Desired>, CallError> {
        let mut missing = Vec::new();
        for one in desired {
            let there = match (have.get(&one.0), &one.1) {
                (None, _) => false,
                (Some(_), None) => true,
                // One of the downloaded versions is enough.
                (Some(versions), Some(version)) => {
                    let mut is_present = false;
                    for have in versions.split(',') {
                        is_present |= satisfies(&context.call, packages, have, version, options.ignore_epoch)?;
                    }
                    is_present
                }
            };
            if !there {
                missing.push(one.clone());
            }
        }
        Ok(missing)
    };
    let targets = missing(&have()?)?;
    if targets.is_empty() {
        let versioned = desired.iter().any(|(_, version)| version.is_some());
        let versions = if versioned { " (matching specified versions)" } else { "" };
        return Ok(StateReturn::ok(name, format!("All specified packages{versions} are already downloaded")));
    }
    let names = targets.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    if context.test {
        return Ok(StateReturn::predicted(name, format!("The following packages would be downloaded: {names}")));
    }
    let outcome =
        put(&context.call, packages, desired, options).map_err(|error| failed_to_begin("downloading", error))?;
    if !outcome.errors.is_empty() {
        let comment = error_message(packages, Operation::Installing, &outcome.errors);
        return Ok(StateReturn::failed(name, comment).with_changes(outcome.changes));
    }
    let failed = missing(&have()?)?;
    if !failed.is_empty() {
        let comment = format!("The following packages failed to download: {}", list(&failed));
        return Ok(StateReturn::failed(name, comment).with_changes(outcome.changes));
    }
    let comment = if outcome.changes.is_empty() { format!("Packages downloaded: {names}") } else { String::new() };
    Ok(StateReturn::ok(name, comment).with_changes(outcome.changes))
}

/// Ensure that the packages of security advisories are installed. No supported package manager has them: the state
/// fails, as Salt's on Debian.
///
/// SLS Example:
///
///     security_fixes:
///       pkg.patch_installed:
///         - advisory_ids: [RHSA-2024:1234]
#[function]
pub fn patch_installed(
    _context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(crate::pkg::further)] _kwargs: Map,
) -> CallResult {
    Ok(absent(&name, "The pkg.patch_installed state is not available on this platform"))
}

/// Ensure that the packages of security advisories are downloaded. No supported package manager has them: the state
/// fails, as Salt's on Debian.
///
/// SLS Example:
///
///     security_fixes:
///       pkg.patch_downloaded:
///         - advisory_ids: [RHSA-2024:1234]
#[function]
pub fn patch_downloaded(
    _context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(crate::pkg::further)] _kwargs: Map,
) -> CallResult {
    Ok(absent(&name, "The pkg.patch_downloaded state is not available on this platform"))
}

fn absent(name: &str, comment: &str) -> Value {
    StateReturn::failed(name, comment).into()
}
