//! Packages that should be there: `pkg.installed`.

use brine_core::function::{Args, CallError};
use brine_core::glob::is_pattern;
use brine_core::{Map, Value, map};

use super::{Wanted, operator, refresh, satisfies};
use crate::modules::pkg::{InstallOptions, Packages, Versions, changes, complaints, problem};
use crate::states::{StateContext, StateReturn};

/// How packages are to be installed.
#[derive(Default)]
pub(super) struct How {
    /// Whether the repositories are asked first; if nothing is said, once in a job.
    pub refresh: Option<bool>,
    pub options: InstallOptions,
    /// Whether they keep their versions from then on.
    pub hold: Option<bool>,
    /// Whether a newer version than the one that is said is good.
    pub allow_updates: bool,
}

pub(super) fn state(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    wanted: &[Wanted],
    how: &How,
) -> Result<StateReturn, CallError> {
    let before = packages.installed(&context.call)?;
    let wanted = with_newest(context, packages, wanted, &before)?;
    let (mut targets, mut again) = (Vec::new(), Vec::new());
    for (package, version) in &wanted {
        let good = match (before.get(package), version) {
            (Some(have), Some(version)) => {
                satisfies(context, packages, have, version)?
                    || how.allow_updates && !is_pattern(version) && is_newer(context, packages, have, version)?
            }
            (have, _) => have.is_some(),
        };
        if !good {
            targets.push((package.clone(), version.clone()));
        } else if how.options.reinstall {
            again.push((package.clone(), version.clone()));
        }
    }
    if targets.is_empty() && again.is_empty() {
        let versions =
            if wanted.iter().any(|(_, version)| version.is_some()) { " and are at the desired version" } else { "" };
        let mut done = StateReturn::ok(name, format!("All specified packages are already installed{versions}"));
        for held in hold(context, &wanted, how)? {
            done.comment = format!("{}.\n{}", done.comment, held.comment);
            done.result = Some(held.result);
            if !held.changes.is_empty() {
                done.changes.insert(held.name.into(), held.changes.into());
            }
        }
        return Ok(done);
    }
    if context.test {
        return would(context, packages, name, &targets, &again, how);
    }
    refresh(context, packages, how.refresh)?;
    let mut exact = targets.clone();
    resolve(context, packages, &mut exact)?;
    let plain = InstallOptions { reinstall: false, ..how.options.clone() };
    for (list, options) in [(&exact, &plain), (&again, &how.options)] {
        if list.is_empty() {
            continue;
        }
        let output = packages.install(&context.call, list, options)?;
        if output.retcode != 0 {
            let changed = changes(&before, &packages.installed(&context.call)?);
            let comment = problem("installing", &[complaints(&output)]);
            return Ok(StateReturn::failed(name, comment).with_changes(changed));
        }
    }
    let after = packages.installed(&context.call)?;
    let mut done = StateReturn::ok(name, "").with_changes(changes(&before, &after));
    for (package, _) in &again {
        let of = |versions: &Versions| versions.get(package).cloned().unwrap_or_default();
        done.changes.insert(package.into(), map! {"old" => of(&before), "new" => of(&after)}.into());
    }
    let (there, missing): (Vec<&Wanted>, Vec<&Wanted>) =
        targets.iter().partition(|(package, _)| after.contains_key(package));
    let mut comments = Vec::new();
    if !missing.is_empty() {
        let missing: Vec<String> = missing.into_iter().map(desired).collect();
        comments.push(format!("The following packages failed to install/update: {}", missing.join(", ")));
        done.result = Some(false);
    }
    if !there.is_empty() {
        comments.push(summary(&there.into_iter().map(desired).collect::<Vec<_>>()));
    }
    let same = wanted.iter().filter(|package| !targets.contains(package) && !again.contains(package));
    let same: Vec<String> = same.map(desired).collect();
    let (mut held, mut kept) = (Vec::new(), Vec::new());
    for one in hold(context, &wanted, how)? {
        if !one.result {
            done.result = Some(false);
        }
        if one.changes.is_empty() {
            kept.push(one.comment);
            continue;
        }
        held.push(one.comment);
        let entry = done.changes.entry(one.name.into()).or_insert_with(Value::map);
        add_to(entry, &one.changes);
    }
    comments.extend(held);
    match same.len() {
        0 => {}
        1..=20 => comments.push(format!("The following packages were already installed: {}", same.join(", "))),
        number => comments.push(format!("{number} targeted packages were already installed")),
    }
    comments.extend(kept);
    comments.extend(again.iter().map(|package| format!("Package {} was reinstalled.", desired(package))));
    done.comment = comments.join("\n");
    Ok(done)
}

/// What would be done.
fn would(
    context: &StateContext,
    packages: &dyn Packages,
    name: &str,
    targets: &[Wanted],
    again: &[Wanted],
    how: &How,
) -> Result<StateReturn, CallError> {
    let (mut comments, mut changes) = (Vec::new(), Map::new());
    if !targets.is_empty() {
        if targets.iter().any(|(_, version)| version.is_none()) {
            refresh(context, packages, how.refresh)?;
        }
        let names: Vec<&str> = targets.iter().map(|(package, _)| package.as_str()).collect();
        comments.push(format!("The following packages would be installed/updated: {}", names.join(", ")));
        for target in targets {
            let new = if operator(target.1.as_deref().unwrap_or_default()).is_some() {
                None
            } else {
                let offered = packages.offered(&context.call, &[desired(target)])?;
                offered.get(&target.0).and_then(|versions| versions.first().cloned())
            };
            let new = new.unwrap_or_else(|| "installed".into());
            changes.insert(target.0.as_str().into(), map! {"old" => "", "new" => new}.into());
        }
    }
    if !again.is_empty() {
        let names: Vec<String> = again.iter().map(desired).collect();
        comments.push(format!("The following packages would be reinstalled: {}", names.join(", ")));
        changes.extend(again.iter().map(|(name, _)| (name.into(), map! {"old" => "", "new" => "installed"}.into())));
    }
    Ok(StateReturn::would(name, comments.join("\n")).with_changes(changes))
}

/// The packages with the versions that `latest` stands for.
fn with_newest(
    context: &StateContext,
    packages: &dyn Packages,
    wanted: &[Wanted],
    before: &Versions,
) -> Result<Vec<Wanted>, CallError> {
    let mut wanted = wanted.to_vec();
    for (package, version) in wanted.iter_mut().filter(|(_, version)| version.as_deref() == Some("latest")) {
        let mut newest = packages.candidates(&context.call, std::slice::from_ref(package))?;
        *version = newest.remove(package).or_else(|| before.get(package).cloned());
    }
    Ok(wanted)
}

fn is_newer(context: &StateContext, packages: &dyn Packages, have: &str, than: &str) -> Result<bool, CallError> {
    let than = operator(than).map_or(than, |(_, version)| version);
    Ok(packages.compare(&context.call, have, than)? == std::cmp::Ordering::Greater)
}

/// Turns ranges into versions that there are: apt is asked for one version.
fn resolve(context: &StateContext, packages: &dyn Packages, targets: &mut [Wanted]) -> Result<(), CallError> {
    let mut errors = Vec::new();
    for (package, version) in targets {
        let Some(spec) = version.clone() else { continue };
        match operator(&spec) {
            Some(("==" | "=", exact)) => *version = Some(exact.to_owned()),
            Some(_) => {
                let offered = packages.offered(&context.call, std::slice::from_ref(package))?.remove(package);
                let offered = offered.unwrap_or_default();
                *version = None;
                for candidate in &offered {
                    if satisfies(context, packages, candidate, &spec)? {
                        *version = Some(candidate.clone());
                        break;
                    }
                }
                if version.is_none() {
                    let there = if offered.is_empty() { "None".into() } else { offered.join(", ") };
                    errors.push(format!("No version matching '{package}{spec}' could be found (available: {there})"));
                }
            }
            None => {}
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(CallError::Execution(problem("installing", &errors))) }
}

/// A package with the version that was asked for.
fn desired((package, version): &Wanted) -> String {
    match version {
        Some(version) if version.starts_with(['<', '>', '=']) => format!("{package}{version}"),
        Some(version) => format!("{package}={version}"),
        None => package.clone(),
    }
}

/// What was installed. Of many packages, their number alone.
pub(super) fn summary(names: &[String]) -> String {
    let told = names.join(", ");
    match names.len() {
        _ if told.len() < 20 => format!("The following packages were installed/updated: {told}"),
        1 => "1 targeted package was installed/updated.".into(),
        number => format!("{number} targeted packages were installed/updated."),
    }
}

/// A package that was to keep its version, or was to be let go.
struct Held {
    name: String,
    changes: Map,
    result: bool,
    comment: String,
}

fn hold(context: &StateContext, wanted: &[Wanted], how: &How) -> Result<Vec<Held>, CallError> {
    let Some(hold) = how.hold else { return Ok(Vec::new()) };
    if context.test {
        let held = crate::modules::pkg::selections(&context.call, "*")?.shift_remove("hold").unwrap_or_default();
        let (not, same) = if hold { ("", true) } else { ("not ", false) };
        let names = wanted.iter().map(|(name, _)| name).filter(|name| held.contains(name) == same);
        let told = |name: &String| Held {
            name: name.clone(),
            changes: Map::new(),
            result: true,
            comment: format!("Package {name} is already set {not}to be held."),
        };
        return Ok(names.map(told).collect());
    }
    let names: Value = wanted.iter().map(|(name, _)| name).collect();
    let function = if hold { "pkg.hold" } else { "pkg.unhold" };
    let done = context.call.call(function, Args::keyword(map! {"pkgs" => names}))?;
    let one = |(name, told): (&Value, &Value)| Held {
        name: name.to_string(),
        changes: told.get("changes").and_then(Value::as_map).cloned().unwrap_or_default(),
        result: told.get("result").is_some_and(Value::is_truthy),
        comment: told.get("comment").map(ToString::to_string).unwrap_or_default(),
    };
    Ok(done.as_map().into_iter().flatten().map(one).collect())
}

/// Puts a change of what dpkg is to do behind that of a version.
fn add_to(change: &mut Value, more: &Map) {
    let Some(change) = change.as_map_mut() else { return };
    for key in ["new", "old"] {
        let more = more.get(key).map(ToString::to_string).unwrap_or_default();
        let text = match change.get(key).map(ToString::to_string) {
            Some(text) if !text.is_empty() => format!("{text}\n{more}"),
            _ => more,
        };
        change.insert(key.into(), text.into());
    }
}
