//! `test`: states without effects, to test requisites and outputters.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, list, map};
use brine_yaml::traverse;

/// Parses an argument of `configurable_test_state`: True, False, or the string `random`.
fn yes_or_random(name: &str, value: &Value) -> Result<bool, CallError> {
    match value {
        Value::Bool(yes) => Ok(*yes),
        Value::Str(word) if word.eq_ignore_ascii_case("random") => Ok(rand::random()),
        _ => Err(CallError::Execution(format!("option '{name}' must be True, False or 'Random'"))),
    }
}

/// State functions of `test`.
pub static FUNCTIONS: Functions<StateContext> = registry!(
    "test",
    [
        nop,
        succeed_without_changes,
        succeed_with_changes,
        fail_without_changes,
        fail_with_changes,
        configurable_test_state,
        check_pillar,
        show_notification,
        mod_watch
    ]
);

/// Do nothing and succeed.
///
/// SLS Example:
///
///     anchor:
///       test.nop:
///         - require:
///           - file: /etc/app.conf
#[function]
pub fn nop(
    _context: &StateContext,
    /// Name of the state.
    name: String,
    /// Any arguments: tests of SLS files may pass what they like.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    Ok(StateReturn::ok(&name, "Success!").into())
}

/// Succeed without changes.
///
/// SLS Example:
///
///     always_succeeds:
///       test.succeed_without_changes: []
#[function]
pub fn succeed_without_changes(
    _context: &StateContext,
    /// Name of the state.
    name: String,
    /// Comment of the result.
    #[default("Success!".into())]
    comment: String,
    /// Any arguments: tests of SLS files may pass what they like.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    Ok(StateReturn::ok(&name, comment).into())
}

/// Succeed with changes.
///
/// SLS Example:
///
///     always_changes:
///       test.succeed_with_changes:
///         - comment: pretends a change
#[function]
pub fn succeed_with_changes(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Comment of the result.
    #[default("Success!".into())]
    comment: String,
    /// Any arguments: tests of SLS files may pass what they like.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    let outcome = if context.test {
        StateReturn::predicted(&name, "If we weren't testing, this would be successful with changes")
    } else {
        StateReturn::ok(&name, comment)
    };
    Ok(outcome.with_changes(simulated_changes()).into())
}

/// Fail without changes.
///
/// SLS Example:
///
///     unsupported_system:
///       test.fail_without_changes:
///         - name: This SLS is for Debian.
///         - unless: test -e /etc/debian_version
///         - failhard: True
#[function]
pub fn fail_without_changes(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Comment of the result.
    #[default("Failure!".into())]
    comment: String,
    /// Any arguments: tests of SLS files may pass what they like.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    let comment = if context.test { "If we weren't testing, this would be a failure!".to_owned() } else { comment };
    Ok(StateReturn::failed(&name, comment).into())
}

/// Fail with changes.
///
/// SLS Example:
///
///     always_fails:
///       test.fail_with_changes:
///         - comment: pretends a change and a failure
#[function]
pub fn fail_with_changes(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Comment of the result.
    #[default("Failure!".into())]
    comment: String,
    /// Any arguments: tests of SLS files may pass what they like.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    let outcome = if context.test {
        StateReturn::predicted(&name, "If we weren't testing, this would be failed with changes")
    } else {
        StateReturn::failed(&name, comment)
    };
    Ok(outcome.with_changes(simulated_changes()).into())
}

/// Return the configured result.
///
/// SLS Example:
///
///     pretend:
///       test.configurable_test_state:
///         - changes: True
///         - result: False
///         - comment: a failed upgrade
#[function]
pub fn configurable_test_state(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Whether there are changes, or `Random`.
    #[default(true.into())]
    changes: Value,
    /// Whether the state succeeds, or `Random`.
    #[default(true.into())]
    result: Value,
    /// Comment of the result.
    #[default]
    comment: String,
    /// Warnings of the result, as a string or a list.
    #[default]
    warnings: Value,
    /// Whether a failure is a failure in test mode, too.
    #[default(false)]
    allow_test_mode_failure: bool,
) -> CallResult {
    let changes = yes_or_random("changes", &changes)?;
    let mut outcome = StateReturn::ok(&name, comment);
    outcome.result = Some(yes_or_random("result", &result)?);
    match warnings {
        Value::Nil => {}
        Value::List(_) => _ = outcome.more.insert("warnings".into(), warnings),
        Value::Str(_) => _ = outcome.more.insert("warnings".into(), list![warnings]),
        _ => return Err(CallError::execution("option 'warnings' must be a string or a list of strings")),
    }
    if context.test {
        // In test mode, a failure is only reported with `allow_test_mode_failure`.
        outcome.result = match outcome.result {
            Some(false) if allow_test_mode_failure => Some(false),
            _ => (!changes).then_some(true),
        };
        if outcome.comment.is_empty() {
            outcome.comment = "This is a test".into();
        }
    }
    Ok(if changes { outcome.with_changes(simulated_changes()) } else { outcome }.into())
}

/// Check that the pillar has keys with values of a type: `present`, `boolean`, `integer`, `string`, `listing`,
/// `dictionary`, each one key or several. `verbose` is without effect: all failed keys are reported.
///
/// SLS Example:
///
///     pillar_of_app:
///       test.check_pillar:
///         - present: app:listen
///         - integer:
///           - app:port
///           - app:workers
///         - dictionary: app:users
///         - failhard: True
#[function]
pub fn check_pillar(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Keys that the pillar must have, as a string or a list.
    #[default]
    present: Value,
    /// Keys whose values must be true or false.
    #[default]
    boolean: Value,
    /// Keys whose values must be integers.
    #[default]
    integer: Value,
    /// Keys whose values must be strings.
    #[default]
    string: Value,
    /// Keys whose values must be lists.
    #[default]
    listing: Value,
    /// Keys whose values must be mappings.
    #[default]
    dictionary: Value,
    /// Without effect: all failed keys are reported.
    #[default(false)]
    verbose: bool,
) -> CallResult {
    _ = verbose;
    let pillar = Value::Map((*context.call.pillar()).clone());
    let has = |key: &str, test: Test| traverse(&pillar, key, ":").map(test);
    // The order matters: the first failing key is reported.
    let kinds: [(&Value, &str, Test); 6] = [
        (&present, "", |_| true),
        (&boolean, "bool", |value| value.as_bool().is_some()),
        (&integer, "int", |value| matches!(value, Value::Int(_) | Value::UInt(_) | Value::Big(_))),
        (&string, "str", |value| value.as_str().is_some()),
        (&listing, "list", |value| value.as_list().is_some()),
        (&dictionary, "dict", |value| value.as_map().is_some()),
    ];
    let mut wrong = String::new();
    for (keys, kind, test) in kinds {
        let one = [keys.clone()];
        for key in keys.as_list().unwrap_or(&one).iter().filter(|key| key.is_truthy()).map(ToString::to_string) {
            match has(&key, test) {
                Some(true) => {}
                Some(false) => wrong.push_str(&format!("Pillar key \"{key}\" is not <class '{kind}'>.\n")),
                None => wrong.push_str(&format!("Pillar key \"{key}\" is missing.\n")),
            }
        }
    }
    Ok(if wrong.is_empty() { StateReturn::ok(&name, "") } else { StateReturn::failed(&name, wrong) }.into())
}

/// Show a text as the comment.
///
/// SLS Example:
///
///     note:
///       test.show_notification:
///         - text: The database is migrated by hand.
#[function]
pub fn show_notification(
    _context: &StateContext,
    /// Name of the state.
    name: String,
    /// Text of the comment.
    #[default]
    text: String,
    /// Any arguments: tests of SLS files may pass what they like.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    if text.is_empty() {
        return Err(CallError::execution("option 'text' is missing"));
    }
    Ok(StateReturn::ok(&name, text).into())
}

/// Return the configured `result`, `comment` and `changes` when a watched state has changes.
///
/// SLS Example:
///
///     watcher:
///       test.succeed_without_changes:
///         - watch:
///           - file: /etc/app.conf
#[function]
pub fn mod_watch(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// The arguments of the watching state, and `sfun`, its function.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let requisites = context.chunk.get("__reqs__").and_then(|requisites| requisites.get("watch"));
    let changed = requisites
        .and_then(Value::as_list)
        .unwrap_or_default()
        .iter()
        .filter(|one| one.get("changes").is_some_and(Value::is_truthy));
    let text = |one: &Value, key: &str| one.get(key).map(ToString::to_string).unwrap_or_default();
    let report: Value =
        changed.map(|one| Value::from(format!("{}: {}", text(one, "state"), text(one, "__id__")))).collect();
    let mut outcome = map! {
        "name" => name,
        "result" => true,
        "comment" => "Watch statement fired.",
        "changes" => map! {"Requisites with changes" => report},
    };
    for (key, value) in
        kwargs.into_iter().filter(|(key, _)| matches!(key.as_str(), Some("result" | "comment" | "changes")))
    {
        let fits = match key.as_str() {
            Some("result") => value.is_nil() || value.as_bool().is_some(),
            Some("changes") => value.as_map().is_some(),
            _ => true,
        };
        if !fits {
            return Err(CallError::Execution(format!("option '{key}' cannot be {value}")));
        }
        outcome.insert(key, value);
    }
    Ok(outcome.into())
}

/// A predicate on the type of a value.
type Test = fn(&Value) -> bool;

fn simulated_changes() -> Map {
    map! {"testing" => map!{"old" => "Unchanged", "new" => "Something pretended to change"}}
}
