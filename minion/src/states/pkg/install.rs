//! Packages that are installed.

use brine_core::function::CallError;
use brine_core::glob::{fnmatch, is_pattern};
use brine_core::{Map, Value, map};

use super::refresh;
use crate::modules::pkg::{
    Doing, LATEST, Options, Packages, Versions, Wanted, install as put, newer, satisfies, trouble,
};
use crate::states::{StateContext, StateReturn};

/// How packages are installed.
#[derive(Debug, Clone, Default)]
pub(super) struct How {
    /// Whether the repositories are asked before; unset, once in a job.
    pub refresh: Option<bool>,
    /// Whether the packages are held afterwards, or let go.
    pub hold: Option<bool>,
    /// How they are got.
    pub options: Options,
}

/// What is to be done with packages.
#[derive(Debug, Default)]
struct Plan {
    install: Vec<Wanted>,
    reinstall: Vec<Wanted>,
}

impl Plan {
    fn make(
        context: &StateContext,
        packages: &dyn Packages,
        wanted: &[Wanted],
        have: &Versions,
        options: &Options,
    ) -> Result<Self, CallError> {
        let mut plan = Plan::default();
        for one in wanted {
            if !have.contains_key(&one.0) {
                plan.install.push(one.clone());
            } else if options.reinstall {
                plan.reinstall.push(one.clone());
            } else if !is_good(context, packages, one, have, options)? {
                plan.install.push(one.clone());
            }
        }
        Ok(plan)
    }

    fn is_empty(&self) -> bool {
        self.install.is_empty() && self.reinstall.is_empty()
    }
}

/// Whether a package is there, in a good version.
fn is_good(
    context: &StateContext,
    packages: &dyn Packages,
    (name, version): &Wanted,
    have: &Versions,
    options: &Options,
) -> Result<bool, CallError> {
    match (have.get(name), version) {
        (Some(have), Some(version)) => satisfies(&context.call, packages, have, version, options.ignore_epoch),
        (have, _) => Ok(have.is_some()),
    }
}

/// A package with the version that was asked for.
fn desired((package, version): &Wanted) -> String {
    match version {
        Some(version) if version.starts_with(['<', '>', '=']) => format!("{package}{version}"),
        Some(version) => format!("{package}={version}"),
        None => package.clone(),
    }
}

fn list(wanted: &[Wanted]) -> String {
    wanted.iter().map(desired).collect::<Vec<_>>().join(", ")
}

pub(super) fn install(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    wanted: &[Wanted],
    how: &How,
) -> Result<StateReturn, CallError> {
    let before = packages.installed(&context.call, &how.options)?;
    let wanted = &newest_said(context, packages, &before, wanted, how)?;
    let plan = Plan::make(context, packages, wanted, &before, &how.options)?;
    if plan.is_empty() {
        let versions =
            if wanted.iter().any(|(_, version)| version.is_some()) { " and are at the desired version" } else { "" };
        let done = StateReturn::ok(name, format!("All specified packages are already installed{versions}"));
        return if context.test { Ok(done) } else { held_too(context, packages, done, wanted, how) };
    }
    if context.test {
        return expected(context, packages, name, &plan, &how.options);
    }
    refresh(context, packages, how.refresh, &how.options)?;
    let targets = [&plan.install[..], &plan.reinstall].concat();
    let done = match put(&context.call, packages, &targets, &how.options) {
        Ok(done) => done,
        Err(CallError::Execution(message)) => {
            let comment = format!("An error was encountered while installing package(s): {message}");
            return Ok(StateReturn::failed(name, comment));
        }
        Err(error) => return Err(error),
    };
    if !done.errors.is_empty() {
        let doing = if plan.reinstall.is_empty() { Doing::Installing } else { Doing::Reinstalling };
        return Ok(StateReturn::failed(name, trouble(packages, doing, &done.errors)).with_changes(done.changes));
    }
    let after = packages.installed(&context.call, &how.options)?;
    let told = outcome(context, packages, wanted, &plan, (&after, &done.changes), how)?;
    let (good, mut comments, mut changes) = (told.0, told.1, done.changes);
    let good = good & hold(context, packages, wanted, how, &mut comments, &mut changes)?;
    let comment = comments.into_iter().filter(|comment| !comment.is_empty()).collect::<Vec<_>>().join("\n");
    Ok(StateReturn { result: Some(good), ..StateReturn::ok(name, comment) }.with_changes(changes))
}

/// What would be done.
fn expected(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    plan: &Plan,
    options: &Options,
) -> Result<StateReturn, CallError> {
    let new = |package: String, version: &str| (package.into(), map! {"new" => version, "old" => ""}.into());
    let (mut comments, mut changes) = (Vec::new(), Map::new());
    if !plan.install.is_empty() {
        let names: Vec<&str> = plan.install.iter().map(|(package, _)| package.as_str()).collect();
        comments.push(format!("The following packages would be installed/updated: {}", names.join(", ")));
        let names: Vec<String> = plan.install.iter().map(|(package, _)| package.clone()).collect();
        let newest = newer(&context.call, packages, &names, options)?;
        for (package, version) in &plan.install {
            let coming = match version {
                None => newest.get(package).cloned(),
                Some(version) => {
                    packages.available(&context.call, package, options)?.into_iter().find(|known| known == version)
                }
            };
            changes.extend([new(package.clone(), coming.as_deref().unwrap_or("installed"))]);
        }
    }
    if !plan.reinstall.is_empty() {
        comments.push(format!("The following packages would be reinstalled: {}", list(&plan.reinstall)));
        changes.extend(plan.reinstall.iter().map(|one| new(desired(one), "installed")));
    }
    Ok(StateReturn::would(name, comments.join("\n")).with_changes(changes))
}

/// What is wanted, with the versions that [`LATEST`] means: the newest there is, or else what is installed.
fn newest_said(
    context: &StateContext,
    packages: &dyn Packages,
    before: &Versions,
    wanted: &[Wanted],
    how: &How,
) -> Result<Vec<Wanted>, CallError> {
    let is_latest = |version: &Option<String>| version.as_deref() == Some(LATEST);
    let names: Vec<String> =
        wanted.iter().filter(|(_, version)| is_latest(version)).map(|(package, _)| package.clone()).collect();
    if names.is_empty() {
        return Ok(wanted.to_vec());
    }
    if !context.test {
        refresh(context, packages, how.refresh, &how.options)?;
    }
    let newest = newer(&context.call, packages, &names, &how.options)?;
    let said = |(package, version): &Wanted| {
        let newest = || newest.get(package).or_else(|| before.get(package)).cloned();
        (package.clone(), if is_latest(version) { newest() } else { version.clone() })
    };
    Ok(wanted.iter().map(said).collect())
}

/// Whether all packages are there as they were wanted, and what is told of them: what failed, what is new, what was there
/// before.
fn outcome(
    context: &StateContext,
    packages: &dyn Packages,
    wanted: &[Wanted],
    plan: &Plan,
    (after, changes): (&Versions, &Map),
    how: &How,
) -> Result<(bool, Vec<String>), CallError> {
    let (mut modified, mut untouched, mut failed, mut again) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for one in wanted {
        let is_target = plan.install.contains(one);
        if plan.reinstall.contains(one) {
            let is_done = changes.contains_key(&Value::from(one.0.as_str()));
            again.push(if is_done {
                format!("Package {} was reinstalled.", desired(one))
            } else {
                format!("Reinstall was not successful for package {}.", desired(one))
            });
            if !is_done {
                failed.push(None);
            }
        } else if is_good(context, packages, one, after, &how.options)? || starts_alike(one, after) {
            if is_target { &mut modified } else { &mut untouched }.push(one.clone());
        } else if is_target {
            failed.push(Some(one.clone()));
        }
    }
    let mut comments = Vec::new();
    let missing: Vec<Wanted> = failed.iter().flatten().cloned().collect();
    if !missing.is_empty() {
        comments.push(format!("The following packages failed to install/update: {}", list(&missing)));
    }
    if !modified.is_empty() {
        let (summary, count) = (list(&modified), modified.len());
        comments.push(if summary.chars().count() < 20 {
            format!("The following packages were installed/updated: {summary}")
        } else {
            let (ending, verb) = if count > 1 { ("s", "were") } else { ("", "was") };
            format!("{count} targeted package{ending} {verb} installed/updated.")
        });
    }
    if !untouched.is_empty() {
        comments.push(if untouched.len() <= 20 {
            format!("The following packages were already installed: {}", list(&untouched))
        } else {
            format!("{} targeted packages were already installed", untouched.len())
        });
    }
    comments.extend(again);
    Ok((failed.is_empty(), comments))
}

/// Whether a glob fits the beginning of the version that is there.
fn starts_alike((name, version): &Wanted, after: &Versions) -> bool {
    let Some((have, version)) = after.get(name).zip(version.as_ref()) else { return false };
    is_pattern(version) && fnmatch(version, have)
}

/// Holds the packages, or lets them go, if that is asked for: whether that worked.
fn hold(
    context: &StateContext,
    packages: &dyn Packages,
    wanted: &[Wanted],
    how: &How,
    comments: &mut Vec<String>,
    changes: &mut Map,
) -> Result<bool, CallError> {
    let (Some(hold), Some(locks)) = (how.hold, packages.locks()) else { return Ok(true) };
    let names: Vec<Wanted> = wanted.iter().map(|(name, _)| (name.clone(), None)).collect();
    let told = match locks.set(&context.call, &names, hold, &how.options) {
        Ok(told) => told,
        Err(CallError::Execution(message)) => {
            comments.push(message);
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let mut good = true;
    for (package, one) in told {
        good &= one.get("result").is_some_and(Value::is_truthy);
        comments.extend(one.get("comment").map(ToString::to_string));
        let Some(held) = one.get("changes").and_then(Value::as_map).filter(|held| !held.is_empty()) else { continue };
        match changes.get_mut(&package).and_then(Value::as_map_mut) {
            // A package that is new and held is told as both.
            Some(change) => {
                for (key, value) in held {
                    let have = change.get(key).map(ToString::to_string).filter(|have| !have.is_empty());
                    let both = have.map_or_else(|| value.to_string(), |have| format!("{have}\n{value}"));
                    change.insert(key.clone(), both.into());
                }
            }
            None => _ = changes.insert(package, held.clone().into()),
        }
    }
    Ok(good)
}

/// The state of packages that were there already, when they have been held or let go.
fn held_too(
    context: &StateContext,
    packages: &dyn Packages,
    mut done: StateReturn,
    wanted: &[Wanted],
    how: &How,
) -> Result<StateReturn, CallError> {
    let (mut comments, mut changes) = (Vec::new(), Map::new());
    let good = hold(context, packages, wanted, how, &mut comments, &mut changes)?;
    for comment in comments {
        done.comment += &format!(".\n{comment}");
    }
    Ok(StateReturn { result: Some(good), ..done }.with_changes(changes))
}
