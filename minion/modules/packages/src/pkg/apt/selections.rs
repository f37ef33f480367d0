//! dpkg's selection states, by which packages are held.

use brine_context::Context;
use brine_function::CallError;
use brine_host::process::Program;
use brine_host::programs::argument;
use brine_text::shell::quote;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

use super::Apt;
use crate::pkg::holds::HoldResult;
use crate::pkg::manager::{Desired, Locks};
use crate::pkg::options::Options;

fn dpkg(context: &Context, words: &str, stdin: Option<String>) -> Result<String, CallError> {
    let program = Program { command: format!("dpkg {words}"), stdin, ..Program::default() };
    let output = context.run_program(&program).map_err(CallError::execution)?;
    // A name without a match is not a failure here.
    Ok(output.stdout)
}

/// Returns the packages that match a pattern, by selection state.
pub fn selections(context: &Context, pattern: &str) -> Result<IndexMap<String, Vec<String>>, CallError> {
    let pattern = quote(&argument(pattern)?);
    let mut found: IndexMap<String, Vec<String>> = IndexMap::new();
    for line in dpkg(context, &format!("--get-selections {pattern}"), None)?.lines() {
        if let [name, state] = line.split_whitespace().collect::<Vec<_>>()[..] {
            found.entry(state.to_owned()).or_default().push(name.to_owned());
        }
    }
    Ok(found)
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

    fn set(&self, context: &Context, wanted: &[Desired], hold: bool, _options: &Options) -> Result<Map, CallError> {
        let mut report = Map::new();
        for package in wanted {
            let name = &package.0;
            let found = selections(context, name)?;
            let old = found.keys().next().cloned();
            let is_held = found.contains_key("hold");
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
