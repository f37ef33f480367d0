//! `state.disable` and related functions: SLS files that this minion refuses to run. Their names are stored in the
//! grain `state_runs_disabled`.

use brine_context::Context;
use brine_function::arguments::names;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map};

const GRAIN: &str = "state_runs_disabled";

/// Execution functions of `state`.
pub static FUNCTIONS: Functions<Context> = registry!("state", [disable, enable, list_disabled]);

/// Disable SLS files, all SLS files below a name (`web.*`), or the `highstate`.
///
/// CLI Example:
///
///     salt '*' state.disable highstate
///     salt '*' state.disable web,db.*
#[function]
pub fn disable(
    context: &Context,
    /// Names of SLS files or functions, or `highstate`, as a list or with commas.
    states: Value,
) -> CallResult {
    change(context, &states, true)
}

/// Enable disabled SLS files.
///
/// CLI Example:
///
///     salt '*' state.enable highstate
#[function]
pub fn enable(
    context: &Context,
    /// Names of SLS files or functions, or `highstate`, as a list or with commas.
    states: Value,
) -> CallResult {
    change(context, &states, false)
}

/// Return the disabled SLS files.
///
/// CLI Example:
///
///     salt '*' state.list_disabled
#[function]
pub fn list_disabled(context: &Context) -> CallResult {
    Ok(context.grains().get(GRAIN).cloned().unwrap_or_else(|| "".into()))
}

fn change(context: &Context, states: &Value, disable: bool) -> Result<Value, CallError> {
    let mut disabled = disabled(context);
    let word = if disable { "disabled" } else { "enabled" };
    let mut report = Vec::new();
    for state in names(states) {
        let index = disabled.iter().position(|have| *have == state);
        report.push(match index {
            Some(index) if !disable => {
                disabled.remove(index);
                format!("Info: {state} state {word}.")
            }
            None if disable => {
                disabled.push(state.clone());
                format!("Info: {state} state {word}.")
            }
            _ => format!("Info: {state} state already {word}."),
        });
    }
    context.call("grains.setval", Args::positional([GRAIN.into(), disabled.into()]))?;
    Ok(map! {"res" => true, "msg" => report.join("\n")}.into())
}

fn disabled(context: &Context) -> Vec<String> {
    let grains = context.grains();
    let names = grains.get(GRAIN).and_then(Value::as_list).unwrap_or_default();
    names.iter().map(ToString::to_string).collect()
}

/// Returns Salt's messages on disabled SLS files, one line each.
pub(super) fn disabled_messages(context: &Context, states: &[String]) -> Vec<String> {
    let disabled = disabled(context);
    let mut report = Vec::new();
    for state in states {
        for entry in &disabled {
            let by = match entry.split_once(".*") {
                Some((directory, _)) if state.starts_with(&format!("{directory}.")) => format!(" by \"{entry}\""),
                None if entry == state => String::new(),
                _ => continue,
            };
            report.push(format!(
                "The state file \"{state}\" is currently disabled{by}, to re-enable, run state.enable {entry}."
            ));
        }
    }
    report
}

/// Returns the result of a disabled highstate, if it is disabled.
pub(super) fn highstate(context: &Context) -> Option<Value> {
    disabled(context).iter().any(|entry| entry == "highstate").then(|| {
        map! {
            "name" => "Salt highstate run is disabled. To re-enable, run state.enable highstate",
            "result" => "False",
            "comment" => "Disabled",
        }
        .into()
    })
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;
    use crate::testing;

    #[test]
    fn disabled_sls_files_are_reported() {
        let context = testing::context(&[]);
        let grains = map! {GRAIN => list!["a", "web.*"]};
        context.minion.grains.set(grains);
        let report = disabled_messages(&context, &["a", "web.nginx", "web", "b"].map(str::to_owned));
        assert_eq!(
            report,
            [
                "The state file \"a\" is currently disabled, to re-enable, run state.enable a.",
                "The state file \"web.nginx\" is currently disabled by \"web.*\", to re-enable, run state.enable web.*.",
            ]
        );
        assert_eq!(highstate(&context), None);
    }
}
