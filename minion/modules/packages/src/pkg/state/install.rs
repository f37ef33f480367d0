//! States of installed packages.

use brine_context::{StateContext, StateReturn};
use brine_function::CallError;
use brine_value::{Map, Value, map};

use super::{failed_to_begin, refresh};
use crate::pkg::{
    Desired, LATEST, Operation, Options, Packages, Versions, error_message, install as put, newer, or_newer, satisfies,
};

/// Options of an installation.
#[derive(Debug, Clone, Default)]
pub(super) struct InstallOptions {
    /// Whether the repositories are refreshed first; if unset, once per job.
    pub refresh: Option<bool>,
    /// Whether the packages are held afterwards, or released.
    pub hold: Option<bool>,
    /// Whether a newer version than the given one is accepted.
    pub allow_updates: bool,
    /// Options of the package manager.
    pub options: Options,
}

/// Pending operations on packages.
#[derive(Debug, Default)]
struct Plan {
    install: Vec<Desired>,
    reinstall: Vec<Desired>,
}

impl Plan {
    fn make(
        context: &StateContext,
        packages: &dyn Packages,
        desired: &[Desired],
        have: &Versions,
        how: &InstallOptions,
    ) -> Result<Self, CallError> {
        let mut plan = Plan::default();
        for one in desired {
            if !have.contains_key(&one.0) {
                plan.install.push(one.clone());
            } else if how.options.reinstall {
                plan.reinstall.push(one.clone());
            } else if !is_good(context, packages, one, have, how)? {
                plan.install.push(one.clone());
            }
        }
        Ok(plan)
    }

    fn is_empty(&self) -> bool {
        self.install.is_empty() && self.reinstall.is_empty()
    }
}

/// Whether a package is installed in an accepted version.
fn is_good(
    context: &StateContext,
    packages: &dyn Packages,
    (name, version): &Desired,
    have: &Versions,
    how: &InstallOptions,
) -> Result<bool, CallError> {
    let (Some(have), Some(version)) = (have.get(name), version) else { return Ok(have.contains_key(name)) };
    let newer = if how.allow_updates { or_newer(version) } else { None };
    let version = newer.as_ref().unwrap_or(version);
    satisfies(&context.call, packages, have, version, how.options.ignore_epoch)
}

/// Whether the newest version is requested.
fn is_latest((_, version): &Desired) -> bool {
    version.as_deref() == Some(LATEST)
}

/// Replaces [`LATEST`] by actual versions: the newest available, or else the installed one.
fn resolve_latest(
    context: &StateContext,
    packages: &dyn Packages,
    desired: &[Desired],
    before: &Versions,
    options: &Options,
) -> Result<Vec<Desired>, CallError> {
    let names: Vec<String> = desired.iter().filter(|one| is_latest(one)).map(|(package, _)| package.clone()).collect();
    let newest = newer(&context.call, packages, &names, options)?;
    let described = |one: &Desired| {
        if !is_latest(one) {
            return one.clone();
        }
        // Of several installed versions, the last is the newest.
        let have = before.get(&one.0).and_then(|have| have.rsplit(',').next());
        let version = newest.get(&one.0).map(String::as_str).or(have);
        (one.0.clone(), version.map(str::to_owned))
    };
    Ok(desired.iter().map(described).collect())
}

/// Formats a package with its requested version.
pub(super) fn desired((package, version): &Desired) -> String {
    match version {
        Some(version) if version.starts_with(['<', '>', '=']) => format!("{package}{version}"),
        Some(version) => format!("{package}={version}"),
        None => package.clone(),
    }
}

pub(super) fn list(packages: &[Desired]) -> String {
    packages.iter().map(desired).collect::<Vec<_>>().join(", ")
}

/// Formats the installed packages; many are only counted.
pub(super) fn summary(names: &[String]) -> String {
    let list = names.join(", ");
    if list.chars().count() < 20 {
        return format!("The following packages were installed/updated: {list}");
    }
    let (ending, verb) = if names.len() > 1 { ("s", "were") } else { ("", "was") };
    format!("{} targeted package{ending} {verb} installed/updated.", names.len())
}

/// Returns the change of a package that is not installed, as predicted by test mode.
pub(super) fn newly(version: &str) -> Value {
    map! {"old" => "", "new" => version}.into()
}

pub(super) fn install(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    desired: &[Desired],
    how: &InstallOptions,
) -> Result<StateReturn, CallError> {
    let before = packages.installed(&context.call, &how.options)?;
    let (mut how, mut desired) = (how.clone(), desired.to_vec());
    if desired.iter().any(is_latest) {
        refresh(context, packages, how.refresh, &how.options)?;
        how.refresh = Some(false);
        desired = resolve_latest(context, packages, &desired, &before, &how.options)?;
    }
    let plan = Plan::make(context, packages, &desired, &before, &how)?;
    if plan.is_empty() {
        return Run { context, packages, name, how: &how }.already_there(&desired);
    }
    if context.test {
        return Run { context, packages, name, how: &how }.expected(&plan);
    }
    refresh(context, packages, how.refresh, &how.options)?;
    let targets = [&plan.install[..], &plan.reinstall].concat();
    let result =
        put(&context.call, packages, &targets, &how.options).map_err(|error| failed_to_begin("installing", error))?;
    if !result.errors.is_empty() {
        let doing = if plan.reinstall.is_empty() { Operation::Installing } else { Operation::Reinstalling };
        return Ok(
            StateReturn::failed(name, error_message(packages, doing, &result.errors)).with_changes(result.changes)
        );
    }
    let outcome = Outcome::of(context, packages, &desired, &plan, &result.changes, &how)?;
    let mut changes = result.changes;
    let held = Held::set(context, packages, &desired, &how, &mut changes)?;
    let result = if outcome.is_good() { held.result } else { Some(false) };
    let comment = outcome.comments(held).join("\n");
    Ok(StateReturn { result, ..StateReturn::ok(name, comment) }.with_changes(changes))
}

/// A state run that installs nothing: all packages are installed, or in test mode.
struct Run<'a> {
    context: &'a StateContext,
    packages: &'a dyn Packages,
    name: &'a str,
    how: &'a InstallOptions,
}

impl Run<'_> {
    /// Returns the result for packages that were installed already, after they were held or released.
    fn already_there(&self, desired: &[Desired]) -> Result<StateReturn, CallError> {
        let Run { context, packages, name, how } = *self;
        let is_versioned = desired.iter().any(|(_, version)| version.is_some());
        let versions = if is_versioned { " and are at the desired version" } else { "" };
        let mut comment = format!("All specified packages are already installed{versions}");
        let mut changes = Map::new();
        let held = Held::set(context, packages, desired, how, &mut changes)?;
        for reported in [held.changed, held.kept, held.failed].concat() {
            comment += &format!(".\n{reported}");
        }
        Ok(StateReturn { result: held.result, ..StateReturn::ok(name, comment) }.with_changes(changes))
    }

    /// Returns the result of test mode.
    fn expected(&self, plan: &Plan) -> Result<StateReturn, CallError> {
        let Run { context, packages, name, how } = *self;
        let (mut comments, mut changes) = (Vec::new(), Map::new());
        if !plan.install.is_empty() {
            let names: Vec<&str> = plan.install.iter().map(|(package, _)| package.as_str()).collect();
            comments.push(format!("The following packages would be installed/updated: {}", names.join(", ")));
            let plain: Vec<String> = plan
                .install
                .iter()
                .filter(|(_, version)| version.is_none())
                .map(|(package, _)| package.clone())
                .collect();
            let mut newest = Versions::new();
            if !plain.is_empty() {
                refresh(context, packages, how.refresh, &how.options)?;
                newest = newer(&context.call, packages, &plain, &how.options)?;
            }
            for (package, version) in &plan.install {
                let new = match version {
                    Some(version) => packages.predicted_version(&context.call, package, version, &how.options)?,
                    None => newest.remove(package),
                };
                changes.insert(package.into(), newly(new.as_deref().unwrap_or("installed")));
            }
        }
        if !plan.reinstall.is_empty() {
            comments.push(format!("The following packages would be reinstalled: {}", list(&plan.reinstall)));
            changes.extend(plan.reinstall.iter().map(|one| (desired(one).into(), newly("installed"))));
        }
        Ok(StateReturn::predicted(name, comments.join("\n")).with_changes(changes))
    }
}

/// Outcome of an installation.
#[derive(Debug, Default)]
struct Outcome {
    failed: Vec<Desired>,
    modified: Vec<Desired>,
    untouched: Vec<Desired>,
    reinstalled: Vec<Desired>,
    not_reinstalled: Vec<Desired>,
}

impl Outcome {
    fn of(
        context: &StateContext,
        packages: &dyn Packages,
        desired: &[Desired],
        plan: &Plan,
        changes: &Map,
        how: &InstallOptions,
    ) -> Result<Self, CallError> {
        let after = packages.installed(&context.call, &how.options)?;
        let mut outcome = Outcome::default();
        for one in desired {
            let is_target = plan.install.contains(one);
            let group = if plan.reinstall.contains(one) {
                let is_done = changes.contains_key(&Value::from(one.0.as_str()));
                if is_done { &mut outcome.reinstalled } else { &mut outcome.not_reinstalled }
            } else if is_good(context, packages, one, &after, how)? {
                if is_target { &mut outcome.modified } else { &mut outcome.untouched }
            } else if is_target {
                &mut outcome.failed
            } else {
                continue;
            };
            group.push(one.clone());
        }
        Ok(outcome)
    }

    fn is_good(&self) -> bool {
        self.failed.is_empty() && self.not_reinstalled.is_empty()
    }

    /// Returns all comments in Salt's order, including those on holding the packages.
    fn comments(self, held: Held) -> Vec<String> {
        let mut comments = Vec::new();
        if !self.failed.is_empty() {
            comments.push(format!("The following packages failed to install/update: {}", list(&self.failed)));
        }
        if !self.modified.is_empty() {
            comments.push(summary(&self.modified.iter().map(desired).collect::<Vec<_>>()));
        }
        comments.extend(held.changed);
        match self.untouched.len() {
            0 => {}
            1..=20 => {
                comments.push(format!("The following packages were already installed: {}", list(&self.untouched)));
            }
            number => comments.push(format!("{number} targeted packages were already installed")),
        }
        comments.extend(held.kept);
        comments.extend(held.failed);
        comments.extend(self.reinstalled.iter().map(|one| format!("Package {} was reinstalled.", desired(one))));
        let not_done = |one| format!("Reinstall was not successful for package {}.", desired(one));
        comments.extend(self.not_reinstalled.iter().map(not_done));
        comments
    }
}

/// Report on holding or releasing packages.
#[derive(Debug)]
struct Held {
    result: Option<bool>,
    changed: Vec<String>,
    kept: Vec<String>,
    failed: Vec<String>,
}

impl Held {
    /// Holds or releases the packages, if requested, and adds to the changes.
    fn set(
        context: &StateContext,
        packages: &dyn Packages,
        desired: &[Desired],
        how: &InstallOptions,
        changes: &mut Map,
    ) -> Result<Self, CallError> {
        let mut held = Held { result: Some(true), changed: Vec::new(), kept: Vec::new(), failed: Vec::new() };
        let (Some(hold), Some(locks)) = (how.hold, packages.locks()) else { return Ok(held) };
        let names: Vec<Desired> = desired.iter().map(|(name, _)| (name.clone(), None)).collect();
        let report = match locks.set(&context.call, &names, hold, &how.options) {
            Ok(report) => report,
            Err(CallError::Execution(message)) => {
                return Ok(Held { result: Some(false), failed: vec![message], ..held });
            }
            Err(error) => return Err(error),
        };
        for (package, one) in report {
            let comment = one.get("comment").map(ToString::to_string);
            let change = one.get("changes").and_then(Value::as_map).filter(|change| !change.is_empty());
            let is_good = one.get("result").is_some_and(Value::is_truthy);
            if let Some(change) = change {
                add_to(changes, package, change);
                held.changed.extend(comment);
            } else if is_good {
                held.kept.extend(comment);
            } else {
                held.failed.extend(comment);
            }
            held.result = match one.get("result") {
                _ if held.result == Some(false) || is_good => held.result,
                // Test mode: it would be held or released.
                Some(Value::Nil) => None,
                _ => Some(false),
            };
        }
        Ok(held)
    }
}

/// Adds a hold to the changes: a package that is new and held has both.
fn add_to(changes: &mut Map, package: Value, held: &Map) {
    let Some(change) = changes.get_mut(&package).and_then(Value::as_map_mut) else {
        changes.insert(package, held.clone().into());
        return;
    };
    for (key, value) in held {
        let have = change.get(key).map(ToString::to_string).filter(|have| !have.is_empty());
        let both = have.map_or_else(|| value.to_string(), |have| format!("{have}\n{value}"));
        change.insert(key.clone(), both.into());
    }
}
