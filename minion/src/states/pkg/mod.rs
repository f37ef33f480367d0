//! `pkg`: packages as states. `install.rs` is about those that should be there, `holds.rs` keeps versions, `sources.rs` installs files, `upgrade.rs` is about all
//! packages at once.

mod holds;
mod install;
mod sources;
#[cfg(test)]
mod tests;
mod upgrade;

use std::cmp::Ordering;

use brine_core::function::CallError;
use brine_core::glob::{fnmatch, is_pattern};
use brine_core::sls::compile::Chunk;
use brine_core::{Map, Value, functions, map};
use parking_lot::Mutex;

use super::{StateContext, StateReturn};
use crate::modules::pkg::{InstallOptions, Packages, Versions, changes, complaints, packages, problem, wanted};
use holds::{hold, unhold};

/// A package and the version it should have, if that matters.
type Wanted = (String, Option<String>);

functions! {
    module "pkg", context StateContext;

    /// A package, or several by `pkgs`, installed, with a version if one is said.
    fn installed(context, name: String, version: Option<String> = None, pkgs: Value = Value::Nil, refresh: Option<bool> = None, **kwargs) {
        if let Some(sources) = kwargs.get("sources").filter(|sources| sources.is_truthy()) {
            if pkgs.is_truthy() {
                return Ok(StateReturn::failed(&name, "Only one of \"pkgs\" and \"sources\" is permitted.").into());
            }
            return told(&name, sources::install(context, packages(), &name, sources));
        }
        if pkgs.as_list().is_some_and(<[Value]>::is_empty) {
            return Ok(StateReturn::ok(&name, "No packages to install provided").into());
        }
        let wanted = wanted(Some(&name), &pkgs, version.as_deref())?;
        let how = install::How { refresh, options: InstallOptions::of(&kwargs), hold: kwargs.get("hold").map(Value::is_truthy), allow_updates: kwargs.get("allow_updates").is_some_and(Value::is_truthy) };
        told(&name, install::state(context, packages(), &name, &wanted, &how))
    }

    /// A package, or several by `pkgs`, in the newest version.
    fn latest(context, name: String, pkgs: Value = Value::Nil, refresh: Option<bool> = None, **kwargs) {
        if pkgs.as_list().is_some_and(<[Value]>::is_empty) {
            return Ok(StateReturn::ok(&name, "No packages to install provided").into());
        }
        let names: Vec<String> = wanted(Some(&name), &pkgs, None)?.into_iter().map(|(name, _)| name).collect();
        told(&name, newest(context, packages(), &name, &names, refresh, &InstallOptions::of(&kwargs)))
    }

    /// All packages, or those in `pkgs`, in the newest versions that there are.
    fn uptodate(context, name: String, refresh: bool = false, pkgs: Value = Value::Nil, dist_upgrade: bool = false, **_kwargs) {
        told(&name, upgrade::all(context, packages(), &name, &pkgs, refresh, dist_upgrade))
    }

    /// A package, or several by `pkgs`, not installed.
    fn removed(context, name: String, version: Option<String> = None, pkgs: Value = Value::Nil, **_kwargs) {
        let wanted = wanted(Some(&name), &pkgs, version.as_deref())?;
        told(&name, without(context, packages(), &name, &wanted, false))
    }

    /// A package, or several by `pkgs`, not installed, and nothing left of its configuration.
    fn purged(context, name: String, version: Option<String> = None, pkgs: Value = Value::Nil, **_kwargs) {
        let wanted = wanted(Some(&name), &pkgs, version.as_deref())?;
        told(&name, without(context, packages(), &name, &wanted, true))
    }

    /// A package, or several by `pkgs`, kept at the version that it has; with `replace`, no others.
    fn held(context, name: String, version: Option<String> = None, pkgs: Value = Value::Nil, replace: bool = false, **_kwargs) {
        if pkgs.as_list().is_some_and(<[Value]>::is_empty) && !replace {
            return Ok(StateReturn::ok(&name, "No packages to be held provided").into());
        }
        told(&name, hold(context, &name, &wanted(Some(&name), &pkgs, version.as_deref())?, replace))
    }

    /// A package, or several by `pkgs`, that may get new versions; with `all`, each that there is.
    fn unheld(context, name: String, pkgs: Value = Value::Nil, all: bool = false, **_kwargs) {
        if pkgs.as_list().is_some_and(<[Value]>::is_empty) && !all {
            return Ok(StateReturn::ok(&name, "No packages to be unheld provided").into());
        }
        let wanted = wanted(Some(&name), &pkgs, None)?;
        told(&name, unhold(context, &name, |held| all || wanted.iter().any(|(package, _)| package == held)))
    }

    /// What is done when something watched has changed: the state looks again.
    fn mod_watch(context, name: String, **kwargs) {
        let mut kwargs = kwargs;
        let sfun = kwargs.shift_remove("sfun").map(|sfun| sfun.to_string()).unwrap_or_default();
        kwargs.insert("name".into(), name.into());
        let states = &context.call.minion.states;
        states.call(context, &format!("pkg.{sfun}"), brine_core::function::Args::keyword(kwargs))
    }
}

/// Takes the packages of another state along: one call of the package manager instead of two.
pub(super) fn aggregate(chunk: &mut Chunk, other: &Chunk) -> bool {
    let same = |key: &str| chunk.args.get(key) == other.args.get(key);
    let together = ["installed", "latest", "removed", "purged"].contains(&chunk.fun.as_str())
        && chunk.fun == other.fun
        && same("fromrepo")
        && same("refresh")
        // What is held, or comes from files, is a matter of its own.
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

/// The packages of a state as a list: `pkgs`, or its name with its version.
fn named(chunk: &Chunk) -> Vec<Value> {
    match (chunk.args.get("pkgs"), chunk.args.get("version")) {
        (Some(Value::List(packages)), _) => packages.clone(),
        (_, Some(version)) if version.is_truthy() => vec![map! {chunk.name.as_str() => version.clone()}.into()],
        _ => vec![chunk.name.as_str().into()],
    }
}

/// A program that could not be run is a failed state.
fn told(name: &str, done: Result<StateReturn, CallError>) -> Result<Value, CallError> {
    match done {
        Ok(done) => Ok(done.into()),
        Err(CallError::Execution(message)) => Ok(StateReturn::failed(name, message).into()),
        Err(error) => Err(error),
    }
}

/// Asks the repositories, if the state says so or, when it says nothing, once in a job.
fn refresh(context: &StateContext, packages: &dyn Packages, wanted: Option<bool>) -> Result<(), CallError> {
    static REFRESHED: Mutex<String> = Mutex::new(String::new());
    let jid = &context.call.job.jid;
    let first = *REFRESHED.lock() != *jid;
    if wanted.unwrap_or(first) {
        packages.refresh(&context.call)?;
        REFRESHED.lock().clone_from(jid);
    }
    Ok(())
}

/// Whether an installed version is good: the same, one that a glob fits, or one in a range.
fn satisfies(context: &StateContext, packages: &dyn Packages, have: &str, wanted: &str) -> Result<bool, CallError> {
    for part in wanted.split(',').map(str::trim) {
        let good = if let Some((operator, version)) = operator(part) {
            let order = packages.compare(&context.call, have, version)?;
            match operator {
                ">=" => order != Ordering::Less,
                "<=" => order != Ordering::Greater,
                ">" => order == Ordering::Greater,
                "<" => order == Ordering::Less,
                "!=" => order != Ordering::Equal,
                _ => order == Ordering::Equal,
            }
        } else if is_pattern(part) {
            fnmatch(part, have)
        } else {
            have == part
        };
        if !good {
            return Ok(false);
        }
    }
    Ok(true)
}

fn operator(text: &str) -> Option<(&'static str, &str)> {
    [">=", "<=", "!=", "==", ">", "<", "="]
        .iter()
        .find_map(|operator| text.strip_prefix(operator).map(|version| (*operator, version.trim())))
}

fn newest(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    names: &[String],
    when: Option<bool>,
    options: &InstallOptions,
) -> Result<StateReturn, CallError> {
    if !context.test {
        refresh(context, packages, when)?;
    }
    let (before, candidates) = (packages.installed(&context.call)?, packages.candidates(&context.call, names)?);
    let unknown: Vec<String> = names
        .iter()
        .filter(|package| !candidates.contains_key(*package) && !before.contains_key(*package))
        .map(|package| format!("No information found for '{package}'."))
        .collect();
    if !unknown.is_empty() {
        return Ok(StateReturn::failed(name, unknown.join("\n")));
    }
    let targets: Vec<Wanted> = names
        .iter()
        .filter_map(|package| candidates.get(package).map(|candidate| (package, candidate)))
        .filter(|(package, candidate)| before.get(*package) != Some(*candidate))
        .map(|(package, candidate)| (package.clone(), Some(candidate.clone())))
        .collect();
    let sorted = |names: Vec<String>| {
        let mut names = names;
        names.sort();
        names.join(", ")
    };
    if targets.is_empty() {
        let comment = match names {
            [one] => format!("Package {one} is already up-to-date"),
            several => format!("All packages are up-to-date ({}).", sorted(several.to_vec())),
        };
        return Ok(StateReturn::ok(name, comment));
    }
    let told = sorted(targets.iter().map(|(package, _)| package.clone()).collect());
    let same: Vec<&String> = names.iter().filter(|name| !targets.iter().any(|(package, _)| package == *name)).collect();
    if context.test {
        let changes: Map = targets
            .iter()
            .map(|(package, new)| {
                let old = before.get(package).cloned().unwrap_or_default();
                (package.into(), map! {"old" => old, "new" => new.clone()}.into())
            })
            .collect();
        let mut comment = format!("The following packages would be installed/upgraded: {told}");
        if same.len() > 10 {
            comment = format!("{comment}\n{} packages are already up-to-date", same.len());
        } else if !same.is_empty() {
            let have = |name: &&String| format!("{name} ({})", before.get(*name).map_or("", String::as_str));
            let same = sorted(same.iter().map(have).collect());
            comment = format!("{comment}\nThe following packages are already up-to-date: {same}");
        }
        return Ok(StateReturn::would(name, comment).with_changes(changes));
    }
    let output = packages.install(&context.call, &targets, options)?;
    let changed = changes(&before, &packages.installed(&context.call)?);
    if output.retcode != 0 {
        let comment = format!("An error was encountered while installing package(s): {}", complaints(&output));
        return Ok(StateReturn::failed(name, comment).with_changes(changed));
    }
    let mut comment = format!("The following packages were successfully installed/upgraded: {told}");
    if same.len() > 10 {
        comment = format!("{comment} {} packages were already up-to-date", same.len());
    } else if !same.is_empty() {
        let same = sorted(same.into_iter().cloned().collect());
        comment = format!("{comment} The following packages were already up-to-date: {same}");
    }
    Ok(StateReturn::ok(name, comment).with_changes(changed))
}

fn without(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    wanted: &[Wanted],
    purge: bool,
) -> Result<StateReturn, CallError> {
    let before = packages.installed(&context.call)?;
    let left = if purge { packages.left_over(&context.call)? } else { Versions::new() };
    let mut targets = Vec::new();
    for (package, version) in wanted {
        let is_meant = match (before.get(package), version) {
            (Some(have), Some(version)) => satisfies(context, packages, have, version)?,
            (have, _) => have.is_some(),
        };
        if is_meant || left.contains_key(package) {
            targets.push(package.clone());
        }
    }
    targets.sort();
    let (done, verb) = if purge { ("purged", "purging") } else { ("removed", "removing") };
    if targets.is_empty() {
        let comment = if purge {
            "None of the targeted packages are installed or partially installed"
        } else if wanted.iter().any(|(_, version)| version.is_some()) {
            "All specified packages (matching specified versions) are already absent"
        } else {
            "All specified packages are already absent"
        };
        return Ok(StateReturn::ok(name, comment));
    }
    if context.test {
        let changes =
            targets.iter().map(|package| (package.into(), map! {"old" => "", "new" => done}.into())).collect();
        let comment = format!("The following packages will be {done}: {}.", targets.join(", "));
        return Ok(StateReturn::would(name, comment).with_changes(changes));
    }
    let output = packages.remove(&context.call, &targets, purge)?;
    let after = packages.installed(&context.call)?;
    let mut changed = changes(&before, &after);
    if purge {
        let left_changes = changes(&left, &packages.left_over(&context.call)?);
        changed = map! {"installed" => changed, "removed" => left_changes};
    }
    if output.retcode != 0 {
        return Ok(StateReturn::failed(name, problem(verb, &[complaints(&output)])).with_changes(changed));
    }
    let failed: Vec<&String> = targets.iter().filter(|package| after.contains_key(*package)).collect();
    if !failed.is_empty() {
        let failed: Vec<&str> = failed.into_iter().map(String::as_str).collect();
        let comment =
            format!("The following packages failed to {}: {}.", done.trim_end_matches('d'), failed.join(", "));
        return Ok(StateReturn::failed(name, comment).with_changes(changed));
    }
    let mut absent: Vec<&str> = wanted.iter().map(|(package, _)| package.as_str()).collect();
    absent.retain(|package| !targets.iter().any(|target| target == package));
    absent.sort_unstable();
    let comment = if absent.is_empty() {
        format!("All targeted packages were {done}.")
    } else {
        let (absent, gone) = (absent.join(", "), targets.join(", "));
        format!("The following packages were not installed: {absent} The following packages were {done}: {gone}.")
    };
    Ok(StateReturn::ok(name, comment).with_changes(changed))
}
