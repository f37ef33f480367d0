//! `iptables`: states of firewall rules.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use crate::firewalls::done;

/// State functions of `iptables`.
pub static FUNCTIONS: Functions<StateContext> =
    registry!("iptables", [chain_present, chain_absent, append, insert, delete, set_policy, flush]);

/// The arguments that name a chain.
#[derive(brine_function::Args)]
pub struct ChainArgs {
    /// Name of the chain.
    name: String,
    /// Table of the chain.
    #[default("filter".into())]
    table: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
}

impl ChainArgs {
    /// Returns the name of the chain, and the chain with its table and family.
    fn chain(self) -> (String, Chain) {
        let ChainArgs { name, table, family } = self;
        (name.clone(), Chain { table, family, name })
    }
}

/// Ensure that a chain is present.
///
/// SLS Example:
///
///     LOGGING:
///       iptables.chain_present:
///         - table: filter
#[function]
pub fn chain_present(context: &StateContext, #[args] args: ChainArgs) -> CallResult {
    let (name, chain) = args.chain();
    let Chain { table, family, .. } = &chain;
    Ok(if chain.call(context, "check_chain", map! {})?.is_truthy() {
        StateReturn::ok(&name, format!("iptables {name} chain is already exist in {table} table for {family}"))
    } else if context.test {
        StateReturn::predicted(&name, format!("iptables {name} chain in {table} table needs to be set for {family}"))
    } else {
        match chain.call(context, "new_chain", map! {})? {
            Value::Bool(true) => {
                done(&name, format!("iptables {name} chain in {table} table create success for {family}"))
            }
            refused => StateReturn::failed(
                &name,
                format!("Failed to create {name} chain in {table} table: {} for {family}", trimmed(&refused)),
            ),
        }
    }
    .into())
}

/// Ensure that a chain is absent, with all its rules.
///
/// SLS Example:
///
///     LOGGING:
///       iptables.chain_absent:
///         - table: filter
#[function]
pub fn chain_absent(context: &StateContext, #[args] args: ChainArgs) -> CallResult {
    let (name, chain) = args.chain();
    let Chain { table, family, .. } = &chain;
    if !chain.call(context, "check_chain", map! {})?.is_truthy() {
        let message = format!("iptables {name} chain is already absent in {table} table for {family}");
        return Ok(StateReturn::ok(&name, message).into());
    }
    if context.test {
        let message = format!("iptables {name} chain in {table} table needs to be removed {family}");
        return Ok(StateReturn::predicted(&name, message).into());
    }
    for (function, verb) in [("flush", "flush"), ("delete_chain", "delete")] {
        let refused = chain.call(context, function, map! {})?;
        if refused.is_truthy() && refused != true.into() {
            let refused = trimmed(&refused);
            let message = format!("Failed to {verb} {name} chain in {table} table: {refused} for {family}");
            return Ok(StateReturn::failed(&name, message).into());
        }
    }
    Ok(done(&name, format!("iptables {name} chain in {table} table delete success for {family}")).into())
}

/// The arguments of states of rules, but for the chain.
#[derive(brine_function::Args)]
pub struct RuleArgs {
    /// Table of the chain.
    #[default("filter".into())]
    table: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
    /// Whether the rules are saved to the file that is loaded at boot, or the file to save them to.
    #[default(false.into())]
    save: Value,
    /// Options of iptables by their long names.
    #[keywords]
    kwargs: Map,
}

/// Ensure that a rule is in a chain; a missing one is appended. With `save`, it is also saved to the file that is
/// loaded at boot, or to the file that `save` names. All other arguments are options of iptables by their long
/// names.
///
/// SLS Example:
///
///     allow_https:
///       iptables.append:
///         - table: filter
///         - chain: INPUT
///         - proto: tcp
///         - dport: 443
///         - match: state
///         - connstate: NEW
///         - jump: ACCEPT
///         - save: True
#[function]
pub fn append(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Chain of the rule, such as `INPUT`.
    chain: String,
    #[args] at: RuleArgs,
) -> CallResult {
    let rule = at.rule(context, chain, "A", Value::Nil)?;
    let (family, command) = (&rule.chain.family, rule.command.trim());
    let messages = [
        format!("iptables rule for {name} already set ({command}) for {family}"),
        format!("iptables rule for {name} needs to be set ({command}) for {family}"),
        format!("Failed to set iptables rule for {name}.\nAttempted rule was {command} for {family}"),
    ];
    rule.ensure(context, &name, messages, || {
        Ok(rule.chain.call(context, "append", map! {"rule" => &rule.text})?.is_truthy())
    })
}

/// Ensure that a rule is in a chain, as `append`; a missing one is inserted at a position.
///
/// SLS Example:
///
///     allow_ssh:
///       iptables.insert:
///         - position: 1
///         - table: filter
///         - chain: INPUT
///         - proto: tcp
///         - dport: 22
///         - jump: ACCEPT
///         - save: True
#[function]
pub fn insert(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Chain of the rule, such as `INPUT`.
    chain: String,
    /// Position of a missing rule; 1 is the first.
    position: i64,
    #[args] at: RuleArgs,
) -> CallResult {
    let rule = at.rule(context, chain, "I", position.into())?;
    let (family, command) = (&rule.chain.family, rule.command.trim());
    let messages = [
        format!("iptables rule for {name} already set for {family} ({command})"),
        format!("iptables rule for {name} needs to be set for {family} ({command})"),
        format!("Failed to set iptables rule for {name}.\nAttempted rule was {command}"),
    ];
    let what = map! {"position" => position, "rule" => &rule.text};
    rule.ensure(context, &name, messages, || Ok(!rule.chain.call(context, "insert", what)?.is_truthy()))
}

/// Ensure that a rule, given by its options or position, is not in a chain.
///
/// SLS Example:
///
///     no_telnet:
///       iptables.delete:
///         - table: filter
///         - chain: INPUT
///         - proto: tcp
///         - dport: 23
///         - jump: ACCEPT
///         - save: True
#[function]
pub fn delete(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Chain of the rule, such as `INPUT`.
    chain: String,
    /// Position of the rule, instead of its options.
    position: Option<i64>,
    #[args] at: RuleArgs,
) -> CallResult {
    let rule = at.rule(context, chain, "D", position.map_or(Value::Nil, Value::from))?;
    let (family, command) = (&rule.chain.family, rule.command.trim());
    if position.is_none() && !rule.is_there(context)? {
        let message = format!("iptables rule for {name} already absent for {family} ({command})");
        return Ok(StateReturn::ok(&name, message).into());
    }
    if context.test {
        let message = format!("iptables rule for {name} needs to be deleted for {family} ({command})");
        return Ok(StateReturn::predicted(&name, message).into());
    }
    let which = position.map_or_else(|| map! {"rule" => &rule.text}, |position| map! {"position" => position});
    if rule.chain.call(context, "delete", which)?.is_truthy() {
        let message = format!("Failed to delete iptables rule for {name}.\nAttempted rule was {command}");
        return Ok(StateReturn::failed(&name, message).into());
    }
    let message = match rule.saved(context)? {
        Some(saved) => format!("Deleted and saved iptables rule {name} for {family}\n{command}\n{saved}"),
        None => format!("Delete iptables rule for {name} {command}"),
    };
    Ok(done(&name, message).into())
}

/// Ensure that a chain has this policy.
///
/// SLS Example:
///
///     drop_by_default:
///       iptables.set_policy:
///         - table: filter
///         - chain: INPUT
///         - policy: DROP
///         - save: True
#[function]
pub fn set_policy(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Chain, such as `INPUT`.
    chain: String,
    /// `ACCEPT` or `DROP`.
    policy: String,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
    /// Whether the rules are also saved to the file that is loaded at boot, or the path of a file for them.
    #[default(false.into())]
    save: Value,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let target = Chain { table, family, name: chain };
    let Chain { table, family, name: chain } = &target;
    if target.call(context, "get_policy", map! {})?.as_str() == Some(policy.as_str()) {
        let message =
            format!("iptables default policy for chain {chain} on table {table} for {family} already set to {policy}");
        return Ok(StateReturn::ok(&name, message).into());
    }
    if context.test {
        let message = format!(
            "iptables default policy for chain {chain} on table {table} for {family} needs to be set to {policy}"
        );
        return Ok(StateReturn::predicted(&name, message).into());
    }
    if target.call(context, "set_policy", map! {"policy" => &policy})?.is_truthy() {
        return Ok(StateReturn::failed(&name, "Failed to set iptables default policy").into());
    }
    let how = if save_to(context, &save, family)?.is_some() { "Set and saved" } else { "Set" };
    Ok(done(&name, format!("{how} default policy for {chain} to {policy} family {family}")).into())
}

/// Delete all rules of a chain, or of all chains of the table.
///
/// SLS Example:
///
///     flush_input:
///       iptables.flush:
///         - table: filter
///         - chain: INPUT
#[function]
pub fn flush(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
    /// Chain; all chains of the table by default.
    #[default]
    chain: String,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let target = Chain { table, family, name: chain };
    let Chain { table, family, name: chain } = &target;
    if context.test {
        let message = format!("iptables rules in {name} table {table} chain {family} family needs to be flushed");
        return Ok(StateReturn::predicted(&name, message).into());
    }
    if target.call(context, "flush", map! {})?.is_truthy() {
        return Ok(StateReturn::failed(&name, "Failed to flush iptables rules").into());
    }
    Ok(done(&name, format!("Flush iptables rules in {table} table {chain} chain {family} family")).into())
}

/// Table, chain and address family of rules.
struct Chain {
    table: String,
    family: String,
    name: String,
}

impl Chain {
    fn call(&self, context: &StateContext, function: &str, more: Map) -> Result<Value, CallError> {
        let mut args = map! {"table" => &self.table, "chain" => &self.name, "family" => &self.family};
        args.extend(more);
        context.call.call(&format!("iptables.{function}"), Args::keyword(args))
    }
}

/// A rule, and whether it is saved to a file.
struct Rule {
    chain: Chain,
    /// Its options in iptables' syntax.
    text: String,
    /// The whole command.
    command: String,
    save: Value,
}

impl RuleArgs {
    /// Returns the rule that a command adds or deletes in a chain.
    fn rule(self, context: &StateContext, chain: String, command: &str, position: Value) -> Result<Rule, CallError> {
        let RuleArgs { table, family, save, kwargs: options } = self;
        let chain = Chain { table, family, name: chain };
        let text = chain.call(context, "build_rule", options.clone())?.to_string();
        if text.starts_with("Error: ") {
            return Err(CallError::Execution(text));
        }
        let mut full = options;
        full.extend(map! {"full" => true, "command" => command});
        if !position.is_nil() {
            full.insert("position".into(), position);
        }
        let command = chain.call(context, "build_rule", full)?.to_string();
        Ok(Rule { chain, text, command, save })
    }
}

impl Rule {
    fn is_there(&self, context: &StateContext) -> Result<bool, CallError> {
        Ok(self.chain.call(context, "check", map! {"rule" => &self.text})?.is_truthy())
    }

    /// Saves the rules if requested, and returns the message.
    fn saved(&self, context: &StateContext) -> Result<Option<Value>, CallError> {
        save_to(context, &self.save, &self.chain.family)
    }

    /// Ensures that the rule is in its chain; `add` adds it, and returns whether that succeeded. The messages are for
    /// an existing rule, for test mode and for a failure.
    fn ensure(
        &self,
        context: &StateContext,
        name: &str,
        [existing, expected, failed]: [String; 3],
        add: impl FnOnce() -> Result<bool, CallError>,
    ) -> CallResult {
        if self.is_there(context)? {
            return self.report_existing(context, name, existing);
        }
        if context.test {
            return Ok(StateReturn::predicted(name, expected).into());
        }
        if add()? { self.report_set(context, name) } else { Ok(StateReturn::failed(name, failed).into()) }
    }

    fn report_set(&self, context: &StateContext, name: &str) -> Result<Value, CallError> {
        let (family, command) = (&self.chain.family, self.command.trim());
        let report = match self.saved(context)? {
            Some(saved) => format!("Set and saved iptables rule {name} for {family}\n{command}\n{saved}"),
            None => format!("Set iptables rule for {name} to: {command} for {family}"),
        };
        Ok(done(name, report).into())
    }

    /// Returns the result for an existing rule, which is saved if the file differs from the current rules.
    fn report_existing(&self, context: &StateContext, name: &str, mut message: String) -> Result<Value, CallError> {
        if !context.test && self.save.is_truthy() && !self.is_saved(context)? {
            let (family, command) = (&self.chain.family, self.command.trim());
            if let Some(saved) = self.saved(context)? {
                message = format!("{message}\nSaved iptables rule {name} for {family}\n{command}\n{saved}");
            }
        }
        Ok(StateReturn::ok(name, message).into())
    }

    fn is_saved(&self, context: &StateContext) -> Result<bool, CallError> {
        let args = map! {"conf_file" => file_of(&self.save), "family" => &self.chain.family};
        // A missing file has none of the rules.
        let Ok(saved) = context.call.call("iptables.get_saved_rules", Args::keyword(args)) else { return Ok(false) };
        let now = map! {"family" => &self.chain.family};
        let now = context.call.call("iptables.get_rules", Args::keyword(now))?;
        Ok(rules_of(&saved) == rules_of(&now))
    }
}

/// Returns the rules of all chains, without counters.
fn rules_of(tables: &Value) -> Vec<(String, String, Value)> {
    let chains = tables.as_map().into_iter().flatten().flat_map(|(table, chains)| {
        let chains = chains.as_map().into_iter().flatten();
        chains.map(move |(chain, entry)| {
            (table.to_string(), chain.to_string(), entry.get("rules").cloned().unwrap_or(Value::Nil))
        })
    });
    chains.collect()
}

/// Returns the file that `save` names; `None` for the system's own.
fn file_of(save: &Value) -> Option<String> {
    save.as_str().map(str::to_owned)
}

/// Saves the rules if `save` is set, and returns the message.
fn save_to(context: &StateContext, save: &Value, family: &str) -> Result<Option<Value>, CallError> {
    if !save.is_truthy() {
        return Ok(None);
    }
    let args = map! {"filename" => file_of(save), "family" => family};
    context.call.call("iptables.save", Args::keyword(args)).map(Some)
}

fn trimmed(complaint: &Value) -> String {
    complaint.to_string().trim().to_owned()
}
