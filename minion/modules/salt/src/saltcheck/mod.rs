//! `saltcheck`: tests of states (`saltcheck-tests/*.tst`): function calls, and assertions about their results.
//!
//! `suite.rs` finds and renders the files with tests, `assertion.rs` compares results.

mod assertion;
mod suite;
#[cfg(test)]
mod tests;

use std::time::Instant;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{FromValue, Map, Value, json, map};
use indexmap::IndexMap;

use assertion::Assertion;
use suite::Suite;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `saltcheck`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "saltcheck",
    [run_test, state_apply, report_highstate_tests, run_state_tests, run_state_tests_ssh, run_highstate_tests]
);

/// The function of tests that prepare the host; it is not checked.
const STATE_APPLY: &str = "saltcheck.state_apply";

/// The results of tests by state and name.
type Results = IndexMap<String, IndexMap<String, Map>>;

/// Run one test and return its result.
///
/// CLI Example:
///
///     salt '*' saltcheck.run_test test='{module_and_function: test.echo, args: [hi], assertion: assertEqual, expected_return: hi}'
#[function]
pub fn run_test(
    context: &Context,
    /// The test, as in a file.
    #[default]
    test: Value,
    #[keywords] _kwargs: Map,
) -> CallResult {
    match test {
        Value::Map(test) => Ok(run(context, &test).into()),
        _ => Ok("Test argument must be a dictionary".into()),
    }
}

/// Apply states, as `state.apply`, to prepare a test or to clean up after it.
///
/// CLI Example:
///
///     salt '*' saltcheck.state_apply postfix
#[function]
pub fn state_apply(
    context: &Context,
    /// Names of SLS files, with commas.
    state_name: Value,
    /// Options of `state.apply`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    context.call("state.apply", Args { positional: vec![state_name], keyword: kwargs })
}

/// Return the states of the highstate with and without tests. The retcode is the number of states without tests.
///
/// CLI Example:
///
///     salt '*' saltcheck.report_highstate_tests
#[function]
pub fn report_highstate_tests(
    context: &Context,
    /// Environment of the tests.
    saltenv: Option<String>,
) -> CallResult {
    let saltenv = environment(context, saltenv);
    let mut suite = Suite::open(context, &saltenv)?;
    let mut missing = Vec::new();
    for state in top_states(context, &saltenv)? {
        suite.add(&state, false);
        if !suite.found.contains(&state) {
            missing.push(state);
        }
    }
    context.set_retcode(i64::try_from(missing.len()).unwrap_or(i64::MAX));
    Ok(map! {"TEST REPORT RESULTS" => map! {
        "Missing Tests" => missing.len(),
        "States missing tests" => missing,
        "States with tests" => suite.found,
    }}
    .into())
}

/// The arguments of `saltcheck.run_state_tests`.
#[derive(Args)]
pub struct StateTestArgs {
    /// States, as a list or separated by commas.
    state: Value,
    /// Environment of the states.
    saltenv: Option<String>,
    /// Whether all tests in their directories are run, not only those with the name of a state.
    #[default(false)]
    check_all: bool,
    /// Whether only failed tests are returned.
    #[default(false)]
    only_fails: bool,
    /// Without effect: results are not written as XML.
    #[default(false)]
    junit: bool,
}

/// Run the tests of states, and of the states that they include, and return the results. The retcode is 1 if one failed.
///
/// CLI Example:
///
///     salt '*' saltcheck.run_state_tests postfix,common
#[function]
pub fn run_state_tests(context: &Context, #[args] args: StateTestArgs) -> CallResult {
    let StateTestArgs { state, saltenv, check_all, only_fails, junit } = args;
    _ = junit;
    let states = match state {
        Value::List(states) => states.iter().map(ToString::to_string).collect(),
        names => names.to_string().split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>(),
    };
    tested(context, states, &environment(context, saltenv), check_all, only_fails)
}

/// Run the tests of states, as `run_state_tests`.
///
/// CLI Example:
///
///     salt-ssh '*' saltcheck.run_state_tests_ssh postfix
#[function]
pub fn run_state_tests_ssh(context: &Context, #[args] args: StateTestArgs) -> CallResult {
    run_state_tests(context, args)
}

/// Run the tests of all states of the highstate, as `run_state_tests`.
///
/// CLI Example:
///
///     salt '*' saltcheck.run_highstate_tests
#[function]
pub fn run_highstate_tests(
    context: &Context,
    /// Environment of the tests.
    saltenv: Option<String>,
    /// Whether only failed tests are returned.
    #[default(false)]
    only_fails: bool,
    /// Whether the result is a report in JUnit's format.
    #[default(false)]
    junit: bool,
) -> CallResult {
    _ = junit;
    let saltenv = environment(context, saltenv);
    let states = top_states(context, &saltenv)?;
    tested(context, states, &saltenv, false, only_fails)
}

fn environment(context: &Context, saltenv: Option<String>) -> String {
    let own = || context.minion.config.saltenv.clone().filter(|name| !name.is_empty());
    saltenv.filter(|name| !name.is_empty()).or_else(own).unwrap_or_else(|| "base".to_owned())
}

/// Returns the states that the top file assigns.
fn top_states(context: &Context, saltenv: &str) -> Result<Vec<String>, CallError> {
    let keyword = map! {"saltenv" => saltenv};
    let top = context.call("state.show_top", Args { positional: Vec::new(), keyword })?;
    let states = top.get(saltenv).and_then(Vec::from_value);
    states.ok_or_else(|| {
        CallError::execution(format!("the top file assigns no states of the environment '{saltenv}': {top}"))
    })
}

fn tested(context: &Context, states: Vec<String>, saltenv: &str, all: bool, only_fails: bool) -> CallResult {
    let mut suite = Suite::open(context, saltenv)?;
    let mut results = Results::new();
    for state in states {
        suite.add(&state, all);
        let tests = suite.load(context)?;
        let of_state = tests.into_iter().map(|(name, test)| {
            let result = test.as_map().map_or_else(invalid, |test| run(context, test));
            (name, result)
        });
        let of_state = of_state.collect();
        results.entry(state).or_insert(of_state);
    }
    Ok(summary(context, results, only_fails))
}

fn status(result: &Map) -> &str {
    result.get("status").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the results by state, sorted, followed by the counts.
fn summary(context: &Context, results: Results, only_fails: bool) -> Value {
    let count = |word: &str| {
        let all = results.values().flat_map(IndexMap::values);
        all.filter(|result| status(result).starts_with(word)).count()
    };
    let (passed, failed, skipped) = (count("Pass"), count("Fail"), count("Skip"));
    let missing = results.values().filter(|tests| tests.is_empty()).count();
    let time: f64 = results
        .values()
        .flat_map(IndexMap::values)
        .filter_map(|one| one.get("duration").and_then(f64::from_value))
        .sum();
    let mut entries: Vec<(String, Map)> = Vec::new();
    for (state, tests) in results {
        let visible = tests.into_iter().filter(|(_, result)| !only_fails || status(result).starts_with("Fail"));
        let visible: Map = visible.map(|(name, result)| (name.into(), result.into())).collect();
        // A state without failures is an empty mapping, which sorts first.
        let is_hidden = only_fails && visible.is_empty();
        entries.push(if is_hidden { (String::new(), Map::new()) } else { (state.clone(), map! {state => visible}) });
    }
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    context.set_retcode(i64::from(failed > 0));
    let counts = map! {
        "Execution Time" => rounded(time), "Passed" => passed, "Failed" => failed, "Skipped" => skipped, "Missing Tests" => missing,
    };
    entries.into_iter().map(|(_, one)| Value::Map(one)).chain([map! {"TEST RESULTS" => counts}.into()]).collect()
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 10_000.0).round() / 10_000.0
}

fn invalid() -> Map {
    map! {"status" => "Fail - invalid test", "duration" => 0.0}
}

/// Returns a field by its name, with underscores or with dashes.
fn field<'a>(test: &'a Map, name: &str) -> Option<&'a Value> {
    test.get(name).or_else(|| test.get(name.replace('_', "-").as_str()))
}

/// Runs one test.
fn run(context: &Context, test: &Map) -> Map {
    let began = Instant::now();
    let fun = test.get("module_and_function").and_then(Value::as_str).unwrap_or_default();
    let groups: Option<Vec<&Map>> = match test.get("assertions").filter(|groups| groups.is_truthy()) {
        Some(groups) => groups.as_list().map(|groups| groups.iter().filter_map(Value::as_map).collect()),
        None => None,
    };
    let own = [test];
    let assertions: Result<Vec<Assertion>, String> =
        groups.as_deref().unwrap_or(&own).iter().map(|group| Assertion::read(group, fun == STATE_APPLY)).collect();
    let is_known = fun == STATE_APPLY || (fun.split('.').count() == 2 && context.minion.functions.get(fun).is_some());
    let assertions = match assertions {
        Ok(assertions) if is_known && !assertions.is_empty() => assertions,
        other => {
            let reason = other.err().unwrap_or_else(|| format!("'{fun}' is not a function"));
            tracing::error!(reason, "a test of saltcheck is invalid");
            return invalid();
        }
    };
    if test.get("skip").is_some_and(Value::is_truthy) {
        return map! {"status" => "Skip", "duration" => 0.0};
    }
    let positional = test.get("args").and_then(Value::as_list).unwrap_or_default().to_vec();
    let mut keyword = test.get("kwargs").and_then(Value::as_map).cloned().unwrap_or_default();
    keyword.shift_remove("pillar");
    if let Some(pillar) = field(test, "pillar_data").filter(|pillar| pillar.is_truthy()) {
        keyword.insert("pillar".into(), pillar.clone());
    }
    let shows_result = test.get("print_result").is_none_or(Value::is_truthy);
    let has_details = test
        .get("output_details")
        .map_or_else(|| brine_config::opts::modules::saltcheck_output_details(&context.opts()), Value::is_truthy);
    let called = context.call_nested(fun, Args { positional: positional.clone(), keyword });
    let shown_args = test.get("args").filter(|args| !args.is_nil()).map_or_else(|| "null".to_owned(), json::to_json);
    let outcome = |assertion: &Assertion| match &called {
        Ok(value) => {
            let value = assertion.section(value);
            let mut result = map! {"status" => assertion.check(&value, shows_result)};
            if has_details {
                let (title, section) = match &assertion.section {
                    Some((path, _)) => (" assertion_section", format!(" {path}")),
                    None => ("", String::new()),
                };
                result.insert(
                    format!("module.function [args]{title}").into(),
                    format!("{fun} {shown_args}{section}").into(),
                );
                result.insert("saltcheck assertion".into(), assertion.details(&value, shows_result).into());
            }
            result
        }
        Err(error) => map! {"status" => format!("Fail: {error}")},
    };
    let mut result = if groups.is_some() {
        let each: Vec<Map> = assertions.iter().map(outcome).collect();
        let passes = each.iter().all(|one| status(one) == "Pass");
        let numbered =
            each.into_iter().enumerate().map(|(at, one)| (format!("assertion{}", at + 1).into(), one.into()));
        let mut all: Map = numbered.collect();
        all.insert("status".into(), if passes { "Pass" } else { "Fail" }.into());
        all
    } else {
        assertions.first().map(outcome).unwrap_or_default()
    };
    result.insert("duration".into(), rounded(began.elapsed().as_secs_f64()).into());
    result
}
