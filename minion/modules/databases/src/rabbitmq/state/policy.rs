//! `rabbitmq_policy`: states of policies.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::json::from_json;
use brine_value::{Value, map};

use super::or_failed;
use crate::rabbitmq::ctl::Ctl;
use crate::rabbitmq::policy::{Desired, Policy, definition_of, delete, find};

/// State functions of `rabbitmq_policy`.
pub static FUNCTIONS: Functions<StateContext> = registry!("rabbitmq_policy", [present, absent]);

/// Ensure that a policy exists with these settings.
///
/// SLS Example:
///
///     ha:
///       rabbitmq_policy.present:
///         - pattern: '^ha\.'
///         - definition:
///             ha-mode: all
///         - apply_to: queues
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the policy.
    name: String,
    /// Regular expression of the names of queues and exchanges.
    pattern: String,
    /// Settings, as JSON or as a mapping.
    definition: Value,
    /// Priority of the policy.
    #[default(0)]
    priority: i64,
    /// Virtual host.
    #[default("/".into())]
    vhost: String,
    /// User that the program runs as.
    runas: Option<String>,
    /// `queues`, `exchanges` or `all`, the default of the server.
    apply_to: Option<String>,
) -> CallResult {
    let ctl = Ctl::new(&context.call, runas);
    let ensure = || {
        let definition = &definition_of(&definition)?;
        let apply_to = apply_to.as_deref().filter(|apply_to| !apply_to.is_empty());
        let desired = Desired { vhost: &vhost, name: &name, pattern: &pattern, definition, priority, apply_to };
        let policy = find(&ctl, &vhost, &name)?;
        let (changes, participle) = match &policy {
            None => (map! {"old" => Value::map(), "new" => &name}, "created"),
            Some(policy) => {
                let updates = updates(policy, &desired)?;
                if updates.is_empty() {
                    return Ok(StateReturn::ok(&name, format!("Policy {vhost} {name} is already present")));
                }
                (map! {"old" => policy.settings(), "new" => updates.into_iter().collect::<Value>()}, "updated")
            }
        };
        let report = if context.test {
            StateReturn::predicted(&name, format!("Policy {vhost} {name} is set to be {participle}"))
        } else {
            StateReturn::ok(&name, desired.set(&ctl)?)
        };
        Ok(report.with_changes(changes))
    };
    or_failed(&name, ensure())
}

/// Ensure that a policy does not exist.
///
/// SLS Example:
///
///     ha:
///       rabbitmq_policy.absent: []
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the policy.
    name: String,
    /// Virtual host.
    #[default("/".into())]
    vhost: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    let ctl = Ctl::new(&context.call, runas);
    let ensure = || {
        if find(&ctl, &vhost, &name)?.is_none() {
            return Ok(StateReturn::ok(&name, format!("Policy '{vhost} {name}' is not present.")));
        }
        let report = if context.test {
            StateReturn::predicted(&name, format!("Policy '{vhost} {name}' will be removed."))
        } else {
            delete(&ctl, &vhost, &name)?;
            StateReturn::ok(&name, "Deleted")
        };
        Ok(report.with_changes(map! {"new" => "", "old" => &name}))
    };
    or_failed(&name, ensure())
}

/// Returns Salt's names of the settings that differ.
fn updates(policy: &Policy, desired: &Desired) -> Result<Vec<&'static str>, CallError> {
    let json = |text: &str| {
        let invalid =
            |error| CallError::Execution(format!("the definition of policy '{}' is invalid: {error}", desired.name));
        from_json(text).map_err(invalid)
    };
    let differs = [
        (policy.pattern != desired.pattern, "Pattern"),
        (json(&policy.definition)? != json(desired.definition)?, "Definition"),
        (desired.apply_to.is_some_and(|apply_to| policy.apply_to != apply_to), "Applyto"),
        (policy.priority != desired.priority.to_string(), "Priority"),
    ];
    Ok(differs.into_iter().filter(|(differs, _)| *differs).map(|(_, name)| name).collect())
}
