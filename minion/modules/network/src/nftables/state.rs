//! `nftables`: states of firewall rules.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::Map;

use super::changes::Which;
use super::ruleset::{Report, Ruleset};
use super::saved::save_to;
use super::{given, hook_of, listing, rule};
use crate::firewalls::done;

/// State functions of `nftables`.
pub static FUNCTIONS: Functions<StateContext> = registry!(
    "nftables",
    [chain_present, chain_absent, append, insert, delete, flush, set_policy, table_present, table_absent]
);

/// Ensure that a chain is present. `table_type`, `hook` and `priority` make it a base chain, as of
/// `nftables.new_chain`.
///
/// SLS Example:
///
///     input:
///       nftables.chain_present:
///         - table: filter
///         - table_type: filter
///         - hook: input
///         - priority: 0
#[function]
pub fn chain_present(
    context: &StateContext,
    /// Name of the chain.
    name: String,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Type of a base chain: `filter`, `nat` or `route`.
    table_type: Option<String>,
    /// Hook of a base chain, such as `input`.
    hook: Option<String>,
    /// Priority of a base chain, such as 0.
    priority: Option<String>,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let ruleset = Ruleset::new(&context.call, &family)?;
    if ruleset.check_chain(&table, &name)?.result {
        let message = format!("nftables {name} chain is already exist in {table} table for {family}");
        return Ok(StateReturn::ok(&name, message).into());
    }
    if context.test {
        let message = format!("nftables chain {name} would be created in table {table} for family {family}");
        return Ok(StateReturn::predicted(&name, message).into());
    }
    let report = match hook_of(table_type, hook, priority) {
        Ok(hook) => ruleset.new_chain(&table, &name, hook.as_ref())?,
        Err(incomplete) => incomplete,
    };
    Ok(if report.result {
        done(&name, format!("nftables {name} chain in {table} table create success for {family}"))
    } else {
        let reason = report.comment;
        StateReturn::failed(&name, format!("Failed to create {name} chain in {table} table: {reason} for {family}"))
    }
    .into())
}

/// Ensure that a chain is absent, with all its rules.
///
/// SLS Example:
///
///     oldchain:
///       nftables.chain_absent:
///         - table: filter
#[function]
pub fn chain_absent(
    context: &StateContext,
    /// Name of the chain.
    name: String,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let ruleset = Ruleset::new(&context.call, &family)?;
    if !ruleset.check_chain(&table, &name)?.result {
        let message = format!("nftables {name} chain is already absent in {table} table for {family}");
        return Ok(StateReturn::ok(&name, message).into());
    }
    if context.test {
        let message = format!("nftables chain {name} would be deleted from table {table} for family {family}");
        return Ok(StateReturn::predicted(&name, message).into());
    }
    let failed = |verb: &str, report: Report| {
        let reason = report.comment;
        let message = format!("Failed to {verb} {name} chain in {table} table: {reason} for {family}");
        Ok(StateReturn::failed(&name, message).into())
    };
    let flushed = ruleset.flush(&table, Some(&name))?;
    if !flushed.result {
        return failed("flush", flushed);
    }
    let deleted = ruleset.delete_chain(&table, &name)?;
    if !deleted.result {
        return failed("delete", deleted);
    }
    Ok(done(&name, format!("nftables {name} chain in {table} table delete success for {family}")).into())
}

/// The arguments of states of rules, but for the position.
#[derive(brine_function::Args)]
pub struct RuleArgs {
    /// Name of the chain.
    chain: String,
    /// Table of the chain.
    #[default("filter".into())]
    table: String,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp`, `bridge` or `netdev`.
    #[default("ipv4".into())]
    family: String,
    /// Whether the rules are saved to the file that is loaded at boot.
    #[default(false)]
    save: bool,
    /// Options of the rule, as of `nftables.build_rule`.
    #[keywords]
    kwargs: Map,
}

/// Ensure that a rule is in a chain; a missing one is appended. All other arguments are options of the rule, as of
/// `nftables.build_rule`.
///
/// SLS Example:
///
///     allow_https:
///       nftables.append:
///         - table: filter
///         - chain: input
///         - proto: tcp
///         - dport: 443
///         - jump: accept
#[function]
pub fn append(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[args] args: RuleArgs,
) -> CallResult {
    present(context, &name, args, &Position::End)
}

/// Ensure that a rule is in a chain, as `append`; a missing one is inserted before the rule with the handle `position`, or
/// before all rules.
///
/// SLS Example:
///
///     allow_ssh:
///       nftables.insert:
///         - table: filter
///         - chain: input
///         - proto: tcp
///         - dport: 22
///         - jump: accept
#[function]
pub fn insert(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Handle of the rule before which a missing one is inserted; before all rules by default.
    position: Option<u64>,
    #[args] args: RuleArgs,
) -> CallResult {
    present(context, &name, args, &Position::Before(position.filter(|position| *position != 0)))
}

/// Where a missing rule is added.
enum Position {
    /// After all rules.
    End,
    /// Before the rule with this handle, or before all rules.
    Before(Option<u64>),
}

fn present(context: &StateContext, name: &str, args: RuleArgs, position: &Position) -> CallResult {
    let rule = match Rule::new(context, args)? {
        Ok(rule) => rule,
        Err(reason) => return Ok(StateReturn::failed(name, reason).into()),
    };
    let (family, text) = (&rule.ruleset.name, &rule.text);
    // The order of the words is Salt's.
    let comment = |what: &str| match position {
        Position::End => format!("nftables rule for {name} {what} ({text}) for {family}"),
        Position::Before(_) => format!("nftables rule for {name} {what} for {family} ({text})"),
    };
    if rule.check()?.result {
        return Ok(StateReturn::ok(name, comment("already set")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(name, comment("needs to be set")).into());
    }
    let words = [rule.table.as_str(), &rule.chain, text];
    let (report, attempted) = match position {
        Position::End => (rule.ruleset.add("add", words, None)?, format!("{text} for {family}.")),
        Position::Before(handle) => (rule.ruleset.add("insert", words, *handle)?, text.clone()),
    };
    if !report.result {
        let reason = report.comment;
        let message = format!("Failed to set nftables rule for {name}.\nAttempted rule was {attempted}\n{reason}");
        return Ok(StateReturn::failed(name, message).into());
    }
    rule.report_set(context, name)
}

/// Ensure that a rule is not in a chain. It is given by its options as in `append`, by its handle `position`, or by both:
/// then the rule with this handle is deleted only if it has these options.
///
/// SLS Example:
///
///     no_telnet:
///       nftables.delete:
///         - table: filter
///         - chain: input
///         - proto: tcp
///         - dport: 23
///         - jump: accept
#[function]
pub fn delete(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Handle of the rule.
    position: Option<u64>,
    #[args] args: RuleArgs,
) -> CallResult {
    let position = position.filter(|position| *position != 0);
    let rule = match Rule::with_position(context, args, position)? {
        Ok(rule) => rule,
        Err(reason) => return Ok(StateReturn::failed(&name, reason).into()),
    };
    let (family, text) = (&rule.ruleset.name, &rule.text);
    if !rule.is_there(position)? {
        let message = format!("nftables rule for {name} already absent for {family} ({text})");
        return Ok(StateReturn::ok(&name, message).into());
    }
    if context.test {
        let message = format!("nftables rule for {name} needs to be deleted for {family} ({text})");
        return Ok(StateReturn::predicted(&name, message).into());
    }
    let which = position.map_or(Which::Text(text), Which::Handle);
    let report = rule.ruleset.delete(&rule.table, &rule.chain, which)?;
    if !report.result {
        let reason = report.comment;
        let message = format!("Failed to delete nftables rule for {name}.\nAttempted rule was {text}\n{reason}");
        return Ok(StateReturn::failed(&name, message).into());
    }
    if rule.save {
        save_to(&context.call, None)?;
        return Ok(done(&name, format!("Deleted and Saved nftables rule for {name} for {text} {family}")).into());
    }
    Ok(done(&name, format!("Delete nftables rule for {name} {text}")).into())
}

/// Delete all rules of a chain, or of all chains of the table. With `ignore_absence`, a missing table or chain is no
/// failure.
///
/// SLS Example:
///
///     flush_input:
///       nftables.flush:
///         - table: filter
///         - chain: input
#[function]
pub fn flush(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
    /// Whether a missing table or chain is no failure.
    #[default(false)]
    ignore_absence: bool,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Chain; all chains of the table by default.
    #[default]
    chain: String,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    if context.test {
        return Ok(StateReturn::predicted(&name, "nftables flush not performed in test mode.").into());
    }
    let ruleset = Ruleset::new(&context.call, &family)?;
    let chain = given(Some(chain));
    let has_table = ruleset.check_table(&table)?.result;
    let has_chain = match &chain {
        Some(chain) => has_table && ruleset.check_chain(&table, chain)?.result,
        None => has_table,
    };
    let chain_name = chain.as_deref().unwrap_or_default();
    let flushed = format!("Flush nftables rules in {table} table {chain_name} chain {family} family");
    Ok(match (has_table, has_chain) {
        (true, true) => {
            let report = ruleset.flush(&table, chain.as_deref())?;
            if report.result {
                done(&name, flushed)
            } else {
                StateReturn::failed(&name, format!("Failed to flush nftables rules\n{}", report.comment))
            }
        }
        // There is nothing to change.
        _ if ignore_absence => StateReturn::ok(&name, flushed),
        (false, _) => {
            let message = format!("Failed to flush table {table} in family {family}, table does not exist.");
            StateReturn::failed(&name, message)
        }
        (true, false) => StateReturn::failed(
            &name,
            format!("Failed to flush chain {chain_name} in table {table} in family {family}, chain does not exist."),
        ),
    }
    .into())
}

/// The arguments of `nftables.set_policy`.
#[derive(brine_function::Args)]
pub struct PolicyArgs {
    /// Name of the state.
    name: String,
    /// Name of the base chain.
    chain: String,
    /// Policy of the chain: `accept` or `drop`.
    policy: String,
    /// Table of the chain.
    #[default("filter".into())]
    table: String,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp`, `bridge` or `netdev`.
    #[default("ipv4".into())]
    family: String,
    /// Whether the rules are saved to a file.
    #[default(false)]
    save: bool,
    /// The file: by default the one that is loaded at boot.
    save_filename: Option<String>,
}

/// Ensure that a base chain has this policy.
///
/// SLS Example:
///
///     drop_by_default:
///       nftables.set_policy:
///         - table: filter
///         - chain: input
///         - policy: drop
#[function]
pub fn set_policy(
    context: &StateContext,
    #[args] args: PolicyArgs,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let PolicyArgs { name, chain, policy, table, family, save, save_filename } = args;
    let ruleset = Ruleset::new(&context.call, &family)?;
    let at = format!("nftables default policy for chain {chain} on table {table} for {family}");
    if ruleset.policy(&table, &chain)?.is_some_and(|current| current.eq_ignore_ascii_case(&policy)) {
        return Ok(StateReturn::ok(&name, format!("{at} already set to {policy}")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("{at} needs to be set to {policy}")).into());
    }
    if !ruleset.set_policy(&table, &chain, &policy.to_ascii_lowercase())? {
        return Ok(StateReturn::failed(&name, "Failed to set nftables default policy").into());
    }
    let mut how = "Set";
    if save {
        save_to(&context.call, save_filename)?;
        how = "Set and saved";
    }
    Ok(done(&name, format!("{how} default policy for {chain} to {policy} family {family}")).into())
}

/// Ensure that a table is present.
///
/// SLS Example:
///
///     filter:
///       nftables.table_present: []
#[function]
pub fn table_present(
    context: &StateContext,
    /// Name of the table.
    name: String,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let ruleset = Ruleset::new(&context.call, &family)?;
    Ok(if ruleset.check_table(&name)?.result {
        StateReturn::ok(&name, format!("nftables table {name} already exists in family {family}"))
    } else if context.test {
        StateReturn::predicted(&name, format!("nftables table {name} would be created in family {family}"))
    } else if ruleset.new_table(&name)?.result {
        done(&name, format!("nftables table {name} successfully created in family {family}"))
    } else {
        StateReturn::failed(&name, format!("Failed to create table {name} for family {family}"))
    }
    .into())
}

/// Ensure that a table is absent, with its chains and rules.
///
/// SLS Example:
///
///     oldtable:
///       nftables.table_absent: []
#[function]
pub fn table_absent(
    context: &StateContext,
    /// Name of the table.
    name: String,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let ruleset = Ruleset::new(&context.call, &family)?;
    Ok(if !ruleset.check_table(&name)?.result {
        StateReturn::ok(&name, format!("nftables table {name} is already absent from family {family}"))
    } else if context.test {
        StateReturn::predicted(&name, format!("nftables table {name} would be deleted from family {family}"))
    } else if ruleset.delete_table(&name)?.result {
        done(&name, format!("nftables table {name} successfully deleted from family {family}"))
    } else {
        StateReturn::failed(&name, format!("Failed to delete table {name} from family {family}"))
    }
    .into())
}

/// A rule of a chain.
struct Rule<'c> {
    ruleset: Ruleset<'c>,
    table: String,
    chain: String,
    /// Its text in the syntax of nft.
    text: String,
    save: bool,
}

impl<'c> Rule<'c> {
    /// Builds a rule. The inner error is the reason why its options make none.
    fn new(context: &'c StateContext, args: RuleArgs) -> Result<Result<Self, String>, CallError> {
        Self::with_position(context, args, None)
    }

    /// Builds a rule, which may have no options if it has a position.
    fn with_position(
        context: &'c StateContext,
        args: RuleArgs,
        position: Option<u64>,
    ) -> Result<Result<Self, String>, CallError> {
        let RuleArgs { chain, table, family, save, kwargs } = args;
        let ruleset = Ruleset::new(&context.call, &family)?;
        let text = match rule::build(kwargs, ruleset.family) {
            Ok(text) if text.is_empty() && position.is_none() => return Ok(Err("Rule needs to be specified".into())),
            Ok(text) => text,
            Err(reason) => return Ok(Err(reason)),
        };
        Ok(Ok(Rule { ruleset, table, chain, text, save }))
    }

    fn check(&self) -> Result<Report, CallError> {
        self.ruleset.check(&self.table, &self.chain, &self.text)
    }

    /// Returns whether the chain has the rule, or the one with a handle, which must have the options, if there are any.
    fn is_there(&self, position: Option<u64>) -> Result<bool, CallError> {
        let Some(position) = position else { return Ok(self.check()?.result) };
        if !self.ruleset.check_place(&self.table, &self.chain)?.result {
            return Ok(false);
        }
        let rules = self.ruleset.rules(&self.table, &self.chain)?;
        let at = rules.iter().find(|listed| listed.handle == position);
        Ok(at.is_some_and(|listed| self.text.is_empty() || listing::is_same(&self.text, &listed.text)))
    }

    fn report_set(&self, context: &StateContext, name: &str) -> CallResult {
        let (family, text) = (&self.ruleset.name, &self.text);
        let mut how = "Set";
        if self.save {
            save_to(&context.call, None)?;
            how = "Set and Saved";
        }
        Ok(done(name, format!("{how} nftables rule for {name} to: {text} for {family}")).into())
    }
}
