//! Version requirements: one version, a glob, or a range of several conditions.

use std::cmp::Ordering;

use brine_context::Context;
use brine_function::CallError;
use brine_text::glob::{fnmatch, is_pattern};

use super::manager::{Desired, Packages, Versions};
use super::options::Options;

/// Placeholder for the newest available version.
pub const LATEST: &str = "latest";

/// A comparison of versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

const OPERATORS: [(&str, Operator); 7] = [
    (">=", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("!=", Operator::NotEqual),
    ("==", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("=", Operator::Equal),
];

impl Operator {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual => order != Ordering::Greater,
            Operator::Equal => order == Ordering::Equal,
            Operator::NotEqual => order != Ordering::Equal,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::Greater => order == Ordering::Greater,
        }
    }

    /// Whether the operator compares the order, so that epochs matter.
    fn is_ordering(self) -> bool {
        !matches!(self, Operator::Equal | Operator::NotEqual)
    }
}

/// Parses conditions such as `>=1.2, <2`.
fn conditions(text: &str) -> Vec<(Operator, &str)> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let read = |part: &'_ str| {
        let operator = OPERATORS.iter().find(|(written, _)| part.starts_with(written));
        operator.map_or((0, Operator::Equal), |(written, operator)| (written.len(), *operator))
    };
    parts
        .map(|part| {
            let (length, operator) = read(part);
            (operator, part.get(length..).unwrap_or_default().trim())
        })
        .collect()
}

/// Returns the condition for a single version or any newer one.
pub fn or_newer(condition: &str) -> Option<String> {
    match conditions(condition)[..] {
        [(Operator::Equal, version)] if !is_pattern(version) => Some(format!(">={version}")),
        _ => None,
    }
}

fn without_epoch(version: &str) -> &str {
    version.split_once(':').map_or(version, |(_, rest)| rest)
}

/// Compares versions, optionally without their epochs.
pub fn compare(
    context: &Context,
    packages: &dyn Packages,
    (a, b): (&str, &str),
    ignore_epoch: bool,
) -> Result<Ordering, CallError> {
    if ignore_epoch {
        return packages.compare(context, without_epoch(a), without_epoch(b));
    }
    packages.compare(context, a, b)
}

/// Whether one of the installed versions is accepted: the same, one that matches a glob, or one in a range.
pub fn satisfies(
    context: &Context,
    packages: &dyn Packages,
    installed: &str,
    requirement: &str,
    ignore_epoch: Option<bool>,
) -> Result<bool, CallError> {
    let conditions = conditions(requirement);
    'versions: for have in installed.split(',') {
        for (operator, version) in &conditions {
            if *operator == Operator::Equal && (have == *version || is_pattern(version) && fnmatch(version, have)) {
                continue;
            }
            let ignore = ignore_epoch.unwrap_or(!operator.is_ordering() && !version.contains(':'));
            let is_glob = is_pattern(version);
            if is_glob || !operator.holds(compare(context, packages, (have, version), ignore)?) {
                continue 'versions;
            }
        }
        return Ok(true);
    }
    Ok(false)
}

/// Resolves globs and ranges to available versions, since managers accept a single version. Returns the resolved
/// packages, and messages on the others.
pub fn resolve(
    context: &Context,
    packages: &dyn Packages,
    desired: &[Desired],
    options: &Options,
) -> Result<(Vec<Desired>, Vec<String>), CallError> {
    let (mut targets, mut errors) = (Vec::new(), Vec::new());
    for (name, version) in desired {
        let Some(asked) = version.as_deref() else {
            targets.push((name.clone(), None));
            continue;
        };
        let conditions = conditions(asked);
        if let [(Operator::Equal, version)] = conditions[..]
            && !is_pattern(version)
        {
            targets.push((name.clone(), Some(version.to_owned())));
            continue;
        }
        let available = packages.available(context, name, options)?;
        let mut chosen = None;
        for version in &available {
            if satisfies(context, packages, version, asked, options.ignore_epoch)? {
                chosen = Some(version);
                break;
            }
        }
        if let Some(version) = chosen {
            targets.push((name.clone(), Some(version.clone())));
            continue;
        }
        let list = available.join(", ");
        let asked = asked.trim_start_matches('=');
        errors.push(if is_pattern(asked) {
            let list = if list.is_empty() { "none" } else { &list };
            format!("No version matching '{asked}' found for package '{name}' (available: {list})")
        } else {
            let list = if list.is_empty() { "None" } else { &list };
            format!("No version matching '{name}{asked}' could be found (available: {list})")
        });
    }
    Ok((targets, errors))
}

/// Returns the packages that are not installed, or for which a newer version is available.
pub fn newer(
    context: &Context,
    packages: &dyn Packages,
    names: &[String],
    options: &Options,
) -> Result<Versions, CallError> {
    let mut versions = packages.candidates(context, names, options)?;
    let installed = packages.installed(context, options)?;
    let mut outdated = Versions::new();
    for (name, candidate) in std::mem::take(&mut versions) {
        let mut is_newer = true;
        for have in installed.get(&name).into_iter().flat_map(|have| have.split(',')) {
            is_newer &= packages.compare(context, &candidate, have)? == Ordering::Greater;
        }
        if is_newer {
            outdated.insert(name, candidate);
        }
    }
    Ok(outdated)
}

#[cfg(test)]
mod tests;
