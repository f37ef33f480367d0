//! dpkg's selection states, by which packages are held, and `pkg.set_selections`.

use std::collections::BTreeSet;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::Program;
use brine_host::programs::argument;
use brine_text::shell::quote;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

use super::{Apt, debian, words};
use crate::pkg::holds::HoldResult;
use crate::pkg::manager::{Desired, Locks};
use crate::pkg::options::Options;

/// Execution functions of `pkg`.
pub static FUNCTIONS: Functions<Context> = registry!("pkg", [set_selections]);

/// Selection states that can be set.
const STATES: [&str; 4] = ["install", "hold", "deinstall", "purge"];

/// Change dpkg's selection states, and return the changes: those of `selection`, a mapping from states (`install`, `hold`,
/// `deinstall`, `purge`) to packages, or of a file with a package and its state on each line. With `clear`, all other
/// packages are deselected first.
///
/// CLI Example:
///
///     salt '*' pkg.set_selections selection='{"install": ["netcat"]}'
///     salt '*' pkg.set_selections selection='{"hold": ["openssh-server", "openssh-client"]}'
///     salt '*' pkg.set_selections salt://path/to/file clear=True
#[function]
pub fn set_selections(
    context: &Context,
    /// Path of the file, or of the program.
    path: Option<String>,
    /// Selections, as a mapping of states to packages.
    #[default]
    selection: Value,
    /// Whether all selections are cleared first.
    #[default(false)]
    clear: bool,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
) -> CallResult {
    debian(context, "set_selections")?;
    let pairs: Vec<(String, String)> = match (path.filter(|path| !path.is_empty()), selection) {
        (Some(_), selection) if selection.is_truthy() => {
            return Err(CallError::Execution(
                "The 'selection' and 'path' arguments to pkg.set_selections are mutually exclusive, and cannot be specified together"
                    .into(),
            ));
        }
        (Some(path), _) => {
            let content = brine_context::files::content(context, &path, &saltenv).map_err(CallError::execution)?;
            let content = content.ok_or_else(|| CallError::Execution(format!("file not found: {path}")))?;
            of_file(&String::from_utf8_lossy(&content))
        }
        (None, Value::Map(states)) => of_map(&states),
        (None, selection) if selection.is_truthy() => {
            return Err(CallError::Execution(
                "selection is invalid: expected a mapping from states to packages".into(),
            ));
        }
        _ => return Ok(Value::map()),
    };
    let wrong: BTreeSet<&str> =
        pairs.iter().map(|(state, _)| state.as_str()).filter(|state| !STATES.contains(state)).collect();
    if !wrong.is_empty() {
        return Err(CallError::Execution(format!(
            "Invalid state(s): {}",
            wrong.into_iter().collect::<Vec<_>>().join(", ")
        )));
    }
    for (_, package) in &pairs {
        argument(package)?;
        if package.contains(char::is_whitespace) {
            return Err(CallError::Execution(format!(
                "the package name '{package}' is invalid: expected no whitespace"
            )));
        }
    }
    if clear && !context.is_test() {
        let output = run(context, &words(&["dpkg", "--clear-selections"]), &[])?;
        if output.retcode != 0 {
            return Err(CallError::Execution(format!("Running dpkg --clear-selections failed: {}", output.stderr)));
        }
    }
    let now = selections(context, "*")?;
    let mut report = Map::new();
    for (state, package) in pairs {
        let old = now.iter().find(|(_, packages)| packages.contains(&package)).map(|(state, _)| state.clone());
        if old.as_ref() == Some(&state) {
            continue;
        }
        if !context.is_test() {
            select(context, &[(package.clone(), None)], &state)?;
        }
        report.insert(package.into(), map! {"old" => old, "new" => state}.into());
    }
    Ok(report.into())
}

fn dpkg(context: &Context, words: &str, stdin: Option<String>) -> Result<String, CallError> {
    let program = Program { command: format!("dpkg {words}"), stdin, ..Program::default() };
    let output = context.run_program(&program).map_err(CallError::execution)?;
    // A name without a match is not a failure here.
    Ok(output.stdout)
}

/// Returns the packages that match a pattern, by selection state.
pub fn selections(context: &Context, pattern: &str) -> Result<IndexMap<String, Vec<String>>, CallError> {
    let pattern = quote(&argument(pattern)?);
    let mut names_by_state: IndexMap<String, Vec<String>> = IndexMap::new();
    for line in dpkg(context, &format!("--get-selections {pattern}"), None)?.lines() {
        if let [name, state] = line.split_whitespace().collect::<Vec<_>>()[..] {
            names_by_state.entry(state.to_owned()).or_default().push(name.to_owned());
        }
    }
    Ok(names_by_state)
}

/// Sets the selection state of packages: `install` or `hold`.
pub(super) fn select(context: &Context, packages: &[Desired], state: &str) -> Result<(), CallError> {
    if packages.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = packages.iter().map(|(name, _)| format!("{name} {state}\n")).collect();
    dpkg(context, "--set-selections", Some(lines.concat())).map(drop)
}

impl Locks for Apt {
    fn held(&self, context: &Context, _options: &Options) -> Result<Vec<Desired>, CallError> {
        let held = selections(context, "*")?.shift_remove("hold").unwrap_or_default();
        Ok(held.into_iter().map(|name| (name, None)).collect())
    }

    fn set(&self, context: &Context, desired: &[Desired], hold: bool, _options: &Options) -> Result<Map, CallError> {
        let mut report = Map::new();
        for package in desired {
            let name = &package.0;
            let current = selections(context, name)?;
            let old = current.keys().next().cloned();
            let is_held = current.contains_key("hold");
            let (not, new) = if hold { ("", "hold") } else { ("not ", "install") };
            let one = if old.is_none() && !hold {
                HoldResult::failed(format!("Package {name} does not have a state."))
            } else if is_held == hold {
                HoldResult::nothing(format!("Package {name} is already set {not}to be held."))
            } else if context.is_test() {
                HoldResult::would(format!("Package {name} is set {not}to be held."))
            } else {
                select(context, std::slice::from_ref(package), new)?;
                let how = if hold { "is now being held" } else { "is no longer being held" };
                HoldResult::done(format!("Package {name} {how}."), map! {"old" => old, "new" => new})
            };
            report.insert(name.as_str().into(), Value::Map(one.of(name)));
        }
        Ok(report)
    }
}

/// Parses a file with a package and its state on each line.
fn of_file(text: &str) -> Vec<(String, String)> {
    let pair = |line: &str| {
        let mut words = line.split_whitespace();
        let (package, state) = (words.next()?, words.next()?);
        (!package.starts_with('#')).then(|| (state.to_owned(), package.to_owned()))
    };
    text.lines().filter_map(pair).collect()
}

/// Returns states and packages of a mapping from states to a package or a list of packages.
fn of_map(states: &Map) -> Vec<(String, String)> {
    let pairs = states.iter().flat_map(|(state, packages)| {
        let packages = match packages {
            Value::List(packages) => packages.iter().map(ToString::to_string).collect(),
            one => vec![one.to_string()],
        };
        packages.into_iter().map(move |package| (state.to_string(), package))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_read_from_files() {
        let pair = |state: &str, package: &str| (state.to_owned(), package.to_owned());
        assert_eq!(of_file("vim  hold\n# x y\nnano\n"), [pair("hold", "vim")]);
    }
}
