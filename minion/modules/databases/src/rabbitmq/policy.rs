//! Policies of a RabbitMQ server: settings of the queues and exchanges whose names match a regular expression.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::json::to_json;
use brine_value::{Map, Value, map};

use super::ctl::{Ctl, field, pattern};
use super::vhost::vhosts;

/// Execution functions of `rabbitmq` for policies.
pub static FUNCTIONS: Functions<Context> =
    registry!("rabbitmq", [list_policies, set_policy, delete_policy, policy_exists]);

/// Return the policies of a virtual host by its name and theirs.
///
/// CLI Example:
///
///     salt '*' rabbitmq.list_policies
#[function]
pub fn list_policies(
    context: &Context,
    /// Virtual host.
    #[default("/".into())]
    vhost: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    let mut listed = Map::new();
    for policy in policies(&Ctl::new(context, runas), &vhost)? {
        let settings = policy.settings().into();
        if let Value::Map(of_vhost) = listed.entry(policy.vhost.into()).or_insert_with(Value::map) {
            of_vhost.insert(policy.name.into(), settings);
        }
    }
    Ok(listed.into())
}

/// Set a policy.
///
/// CLI Example:
///
///     salt '*' rabbitmq.set_policy / HA '.*' '{"ha-mode":"all"}'
#[function]
pub fn set_policy(
    context: &Context,
    /// Virtual host.
    vhost: String,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// Regular expression of the names of queues and exchanges.
    pattern: String,
    /// Settings, as a mapping or as JSON.
    definition: Value,
    /// Priority of the policy.
    priority: Option<i64>,
    /// User that the program runs as.
    runas: Option<String>,
    /// `queues`, `exchanges` or `all`.
    apply_to: Option<String>,
) -> CallResult {
    let policy = Desired {
        vhost: &vhost,
        name: &name,
        pattern: &pattern,
        definition: &definition_of(&definition)?,
        priority: priority.unwrap_or_default(),
        apply_to: apply_to.as_deref(),
    };
    Ok(map! {"Set" => policy.set(&Ctl::new(context, runas))?}.into())
}

/// Delete a policy.
///
/// CLI Example:
///
///     salt '*' rabbitmq.delete_policy / HA
#[function]
pub fn delete_policy(
    context: &Context,
    /// Virtual host.
    vhost: String,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(map! {"Deleted" => delete(&Ctl::new(context, runas), &vhost, &name)?}.into())
}

/// Return whether a policy exists.
///
/// CLI Example:
///
///     salt '*' rabbitmq.policy_exists / HA
#[function]
pub fn policy_exists(
    context: &Context,
    /// Virtual host.
    vhost: String,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(find(&Ctl::new(context, runas), &vhost, &name)?.is_some().into())
}

/// A policy of the server.
pub(super) struct Policy {
    vhost: String,
    name: String,
    pub(super) pattern: String,
    pub(super) apply_to: String,
    /// JSON.
    pub(super) definition: String,
    pub(super) priority: String,
}

impl Policy {
    fn parse(row: &Map) -> Result<Self, CallError> {
        Ok(Policy {
            vhost: field(row, "vhost")?,
            name: field(row, "name")?,
            pattern: field(row, "pattern")?,
            apply_to: field(row, "apply-to")?,
            definition: field(row, "definition")?,
            priority: field(row, "priority")?,
        })
    }

    /// Returns all but the names of the policy and its virtual host.
    pub(super) fn settings(&self) -> Map {
        map! {
            "pattern" => &self.pattern,
            "apply_to" => &self.apply_to,
            "definition" => &self.definition,
            "priority" => &self.priority,
        }
    }
}

/// A policy to set.
pub(super) struct Desired<'a> {
    pub(super) vhost: &'a str,
    pub(super) name: &'a str,
    pub(super) pattern: &'a str,
    /// JSON.
    pub(super) definition: &'a str,
    pub(super) priority: i64,
    pub(super) apply_to: Option<&'a str>,
}

impl Desired<'_> {
    /// Sets the policy and returns the messages of the server.
    pub(super) fn set(&self, ctl: &Ctl) -> Result<String, CallError> {
        let vhost = argument(self.vhost)?;
        let mut words: Vec<String> = vec!["set_policy".into(), "-p".into(), vhost];
        if self.priority != 0 {
            // One word: a negative number would be an option.
            words.push(format!("--priority={}", self.priority));
        }
        if let Some(apply_to) = self.apply_to.filter(|apply_to| !apply_to.is_empty()) {
            words.extend(["--apply-to".into(), argument(apply_to)?]);
        }
        words.extend([argument(self.name)?, pattern(self.pattern)?.to_owned(), argument(self.definition)?]);
        ctl.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// Returns the definition of a policy as JSON.
pub(super) fn definition_of(definition: &Value) -> Result<String, CallError> {
    match definition {
        Value::Str(json) => Ok(json.clone()),
        Value::Map(_) => Ok(to_json(definition)),
        _ => Err(CallError::Execution("The 'definition' argument must be a dictionary or JSON string".into())),
    }
}

/// Returns a policy; `None` also if its virtual host does not exist.
pub(super) fn find(ctl: &Ctl, vhost: &str, name: &str) -> Result<Option<Policy>, CallError> {
    match policies(ctl, vhost) {
        Ok(policies) => Ok(policies.into_iter().find(|policy| policy.vhost == vhost && policy.name == name)),
        Err(_) if vhosts(ctl).is_ok_and(|vhosts| !vhosts.iter().any(|other| other == vhost)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deletes a policy and returns the messages of the server.
pub(super) fn delete(ctl: &Ctl, vhost: &str, name: &str) -> Result<String, CallError> {
    ctl.run(&["clear_policy", "-p", &argument(vhost)?, &argument(name)?])
}

fn policies(ctl: &Ctl, vhost: &str) -> Result<Vec<Policy>, CallError> {
    ctl.list("list_policies", &["-p", &argument(vhost)?])?.iter().map(Policy::parse).collect()
}
