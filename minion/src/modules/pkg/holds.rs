//! The functions of `pkg` that keep packages at their versions.

use brine_core::function::CallError;
use brine_core::{Map, Value, functions, map};
use indexmap::IndexMap;

use super::wanted;
use crate::context::Context;
use crate::modules::programs::argument;
use crate::process::Program;

functions! {
    module "pkg", context Context;

    /// What dpkg is to do with packages, by state: `install`, `hold`, `deinstall`, `purge`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.get_selections 'python-*'
    fn get_selections(context, pattern: Option<String> = None, state: Option<String> = None) {
        let mut found = selections(context, pattern.as_deref().unwrap_or("*"))?;
        if let Some(state) = state {
            let names = found.shift_remove(&state).unwrap_or_default();
            return Ok(map! {state => names}.into());
        }
        Ok(found.into_iter().map(|(state, names)| (state.into(), names.into())).collect::<Map>().into())
    }

    /// Keeps packages at the versions that they have.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.hold <package name>
    fn hold(context, name: Option<String> = None, pkgs: Value = Value::Nil, **_kwargs) {
        select(context, name.as_deref(), &pkgs, true)
    }

    /// Lets packages get new versions again.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.unhold <package name>
    fn unhold(context, name: Option<String> = None, pkgs: Value = Value::Nil, **_kwargs) {
        select(context, name.as_deref(), &pkgs, false)
    }
}

fn dpkg(context: &Context, words: &str, stdin: Option<String>) -> Result<String, CallError> {
    let program = Program { command: format!("dpkg {words}"), stdin, ..Program::default() };
    let output = program.run(&context.job.children, &context.job.cancel).map_err(CallError::execution)?;
    // A name that fits nothing is no failure here.
    Ok(output.stdout)
}

/// The packages that fit, by what dpkg is to do with them.
pub fn selections(context: &Context, pattern: &str) -> Result<IndexMap<String, Vec<String>>, CallError> {
    let pattern = crate::modules::cmd::quote(&argument(pattern)?);
    let mut found: IndexMap<String, Vec<String>> = IndexMap::new();
    for line in dpkg(context, &format!("--get-selections {pattern}"), None)?.lines() {
        if let [name, state] = line.split_whitespace().collect::<Vec<_>>()[..] {
            found.entry(state.to_owned()).or_default().push(name.to_owned());
        }
    }
    Ok(found)
}

/// Sets what dpkg is to do with packages.
pub(super) fn set(context: &Context, names: &[&String], state: &str) -> Result<(), CallError> {
    if names.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = names.iter().map(|name| format!("{name} {state}\n")).collect();
    dpkg(context, "--set-selections", Some(lines.concat())).map(drop)
}

fn select(context: &Context, name: Option<&str>, pkgs: &Value, hold: bool) -> Result<Value, CallError> {
    let names = wanted(name, pkgs, None)?;
    if names.is_empty() {
        return Err(CallError::Execution("One of name, pkgs, or sources must be specified.".into()));
    }
    let mut told = Map::new();
    for (name, _) in names {
        let found = selections(context, &name)?;
        let old = found.keys().next().cloned();
        let is_held = found.contains_key("hold");
        let (not, new) = if hold { ("", "hold") } else { ("not ", "install") };
        let mut changes = Map::new();
        let (result, comment) = if old.is_none() && !hold {
            (Value::Bool(false), format!("Package {name} does not have a state."))
        } else if is_held == hold {
            (true.into(), format!("Package {name} is already set {not}to be held."))
        } else if context.config().test {
            (Value::Nil, format!("Package {name} is set {not}to be held."))
        } else {
            set(context, &[&name], new)?;
            changes = map! {"old" => old, "new" => new};
            let how = if hold { "is now being held" } else { "is no longer being held" };
            (true.into(), format!("Package {name} {how}."))
        };
        let one = map! {"name" => name.as_str(), "changes" => changes, "result" => result, "comment" => comment};
        told.insert(name.into(), one.into());
    }
    Ok(told.into())
}
