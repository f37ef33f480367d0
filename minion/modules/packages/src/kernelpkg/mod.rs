//! `kernelpkg`: packages of Linux kernels on systems with apt.

use std::cmp::Ordering;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `kernelpkg`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "kernelpkg",
    [
        active,
        list_installed,
        latest_available,
        latest_installed,
        needs_reboot,
        upgrade,
        upgrade_available,
        remove,
        cleanup
    ]
);

/// The prefix of the names of kernel packages.
const PREFIX: &str = "linux-image-";

/// Return the release of the running kernel.
///
/// CLI Example:
///
///     salt '*' kernelpkg.active
#[function]
pub fn active(context: &Context) -> CallResult {
    Ok(running(context)?.into())
}

/// Return the releases of the installed kernels of the running kernel's flavour, the oldest first.
///
/// CLI Example:
///
///     salt '*' kernelpkg.list_installed
#[function]
pub fn list_installed(context: &Context) -> CallResult {
    Ok(installed(context)?.into())
}

/// Return the release of the newest kernel in the repositories, or that of the newest installed one.
///
/// CLI Example:
///
///     salt '*' kernelpkg.latest_available
#[function]
pub fn latest_available(context: &Context) -> CallResult {
    Ok(available(context)?.into())
}

/// Return the release of the newest installed kernel. If it is newer than the running one, the host needs a reboot.
///
/// CLI Example:
///
///     salt '*' kernelpkg.latest_installed
#[function]
pub fn latest_installed(context: &Context) -> CallResult {
    Ok(installed(context)?.pop().into())
}

/// Return whether a newer kernel than the running one is installed.
///
/// CLI Example:
///
///     salt '*' kernelpkg.needs_reboot
#[function]
pub fn needs_reboot(context: &Context) -> CallResult {
    Ok(is_outdated(context)?.into())
}

/// Install the newest kernel, and reboot if requested.
///
/// CLI Example:
///
///     salt '*' kernelpkg.upgrade
///     salt '*' kernelpkg.upgrade reboot=True at_time=1
#[function]
pub fn upgrade(
    context: &Context,
    /// Whether the host is rebooted if the kernel is newer than the running one.
    #[default(false)]
    reboot: bool,
    /// Time of the reboot, as in `system.reboot`; immediately by default, so that the result may be lost.
    #[default]
    at_time: Value,
) -> CallResult {
    let newest = available(context)?.ok_or_else(|| {
        CallError::Execution("no kernel is found in the repositories: refresh them with pkg.refresh_db".into())
    })?;
    let package = format!("{PREFIX}{newest}");
    let upgrades = context.call("pkg.install", Args::keyword(map! {"name" => package}))?;
    let required = is_outdated(context)?;
    let report = map! {
        "upgrades" => upgrades,
        "active" => running(context)?,
        "latest_installed" => installed(context)?.pop(),
        "reboot_requested" => reboot,
        "reboot_required" => required,
    };
    if reboot && required {
        tracing::warn!("rebooting this host for a new kernel");
        context.call("system.reboot", Args::keyword(map! {"at_time" => at_time}))?;
    }
    Ok(report.into())
}

/// Return whether the repositories have a newer kernel than the installed ones.
///
/// CLI Example:
///
///     salt '*' kernelpkg.upgrade_available
#[function]
pub fn upgrade_available(context: &Context) -> CallResult {
    let (newest, have) = (available(context)?, installed(context)?.pop());
    Ok((order(&newest.unwrap_or_default(), &have.unwrap_or_default()) == Ordering::Greater).into())
}

/// Remove a kernel, by its release as `kernelpkg.list_installed` returns it. The running kernel is not removed.
///
/// CLI Example:
///
///     salt '*' kernelpkg.remove 4.4.0-70-generic
#[function]
pub fn remove(
    context: &Context,
    /// Version of the kernel.
    release: String,
) -> CallResult {
    Ok(map! {"removed" => vec![without(context, &release)?]}.into())
}

/// Remove all kernels but the running one and, unless `keep_latest` is false, the newest.
///
/// CLI Example:
///
///     salt '*' kernelpkg.cleanup
#[function]
pub fn cleanup(
    context: &Context,
    /// Whether the newest kernel stays.
    #[default(true)]
    keep_latest: bool,
) -> CallResult {
    let (running, mut others) = (running(context)?, installed(context)?);
    if keep_latest {
        others.pop();
    }
    others.retain(|release| *release != running);
    let removed = others.iter().map(|release| without(context, release)).collect::<Result<Vec<_>, _>>()?;
    Ok(map! {"removed" => removed}.into())
}

fn without(context: &Context, release: &str) -> Result<String, CallError> {
    if !installed(context)?.iter().any(|have| have == release) {
        return Err(CallError::Execution(format!("Kernel release '{release}' is not installed")));
    }
    if release == running(context)? {
        return Err(CallError::Execution("Active kernel cannot be removed".into()));
    }
    let package = format!("{PREFIX}{release}");
    context.call("pkg.purge", Args::positional([package.as_str().into()]))?;
    Ok(package)
}

/// Checks that this host has apt, and returns the release of its kernel.
fn running(context: &Context) -> Result<String, CallError> {
    if context.os_family() != "Debian" {
        return Err(CallError::Execution("Module kernelpkg_linux_apt: no APT based system detected".into()));
    }
    let release = context.grains().get("kernelrelease").map(ToString::to_string).unwrap_or_default();
    let normal = context.call("pkg.normalize_name", Args::positional([release.into()]))?;
    Ok(normal.to_string())
}

/// Returns the flavour of the running kernel: the part of its release after version and ABI number, such as `generic`
/// or `cloud-amd64`.
fn kind(context: &Context) -> Result<String, CallError> {
    let release = running(context)?;
    let kind = release.splitn(3, '-').nth(2).map(str::to_owned);
    kind.ok_or_else(|| CallError::Execution(format!("the release of the kernel is not one of a package: {release}")))
}

fn installed(context: &Context) -> Result<Vec<String>, CallError> {
    let kind = kind(context)?;
    let packages = context.call("pkg.list_pkgs", Args::default())?;
    let names = packages.as_map().into_iter().flat_map(Map::keys).map(ToString::to_string);
    let mut releases: Vec<String> = names
        .filter_map(|name| name.strip_prefix(PREFIX).filter(|release| is_of(release, &kind)).map(str::to_owned))
        .collect();
    releases.sort_by(|a, b| order(a, b));
    Ok(releases)
}

/// Whether a kernel release has this flavour.
fn is_of(release: &str, kind: &str) -> bool {
    let version = release.strip_suffix(kind).and_then(|version| version.strip_suffix('-'));
    let is_part = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    version.is_some_and(|version| version.split('-').count() <= 2 && version.split('-').all(is_part))
}

fn available(context: &Context) -> Result<Option<String>, CallError> {
    let kind = kind(context)?;
    let newest = format!("{PREFIX}{kind}");
    let version = context.call("pkg.latest_version", Args::positional([newest.as_str().into()]))?.to_string();
    if version.is_empty() {
        return Ok(installed(context)?.pop());
    }
    if let Some(release) = of_version(&version) {
        return Ok(Some(format!("{release}-{kind}")));
    }
    // Versions of Debian's metapackage do not contain the kernel release, but it depends on the kernel's package.
    let args = Args { positional: vec![newest.as_str().into()], keyword: map! {"filter" => "depends"} };
    let about = context.call("pkg.show", args)?;
    let depends = about.get(&newest).and_then(|versions| versions.get(&version)).and_then(|about| about.get("Depends"));
    let depends = depends.map(ToString::to_string).unwrap_or_default();
    let kernel =
        depends.split([',', ' ']).filter_map(|word| word.strip_prefix(PREFIX)).find(|release| is_of(release, &kind));
    kernel.map(|release| Some(release.to_owned())).ok_or_else(|| {
        CallError::Execution(format!("the kernel of {newest} {version} is unknown: it depends on '{depends}'"))
    })
}

/// Returns the release in a version of Ubuntu: `5.15.0-101` in `5.15.0.101.98`.
fn of_version(version: &str) -> Option<String> {
    let parts: Vec<&str> = version.split('.').collect();
    let [a, b, c, number, ..] = parts[..] else { return None };
    let number: String = number.chars().take_while(char::is_ascii_digit).collect();
    let are_numbers = [a, b, c].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    (are_numbers && !number.is_empty()).then(|| format!("{a}.{b}.{c}-{number}"))
}

fn is_outdated(context: &Context) -> Result<bool, CallError> {
    let newest = installed(context)?.pop();
    let running = running(context)?;
    Ok(newest.is_some_and(|newest| order(&running, &newest) == Ordering::Less))
}

/// Compares releases part by part: numbers by their value, and all else as text.
fn order(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| {
        let mut parts: Vec<String> = Vec::new();
        let mut last = None;
        for c in text.chars() {
            let class = (c.is_ascii_digit(), c.is_ascii_lowercase());
            match parts.last_mut() {
                Some(part) if last == Some(class) => part.push(c),
                _ => parts.push(c.to_string()),
            }
            last = Some(class);
        }
        parts.retain(|part| part != ".");
        let padded = |part: String| {
            if part.starts_with(|c: char| c.is_ascii_digit()) {
                format!("{:0>8}", part.trim_start_matches('0'))
            } else {
                part
            }
        };
        parts.into_iter().map(padded).collect::<Vec<_>>()
    };
    parts(a).cmp(&parts(b))
}

#[cfg(test)]
mod tests;
