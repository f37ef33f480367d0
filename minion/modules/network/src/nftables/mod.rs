//! `nftables`: firewall rules, with the program `nft`.

mod changes;
mod family;
mod listing;
mod rule;
mod ruleset;
mod saved;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use self::changes::{Hook, Which};
use self::family::Family;
use self::ruleset::{NUMERIC, Report, Ruleset, nft, objects};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `nftables`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "nftables",
    [
        version,
        build_rule,
        saved::get_saved_rules,
        list_tables,
        get_rules,
        get_rules_json,
        saved::save,
        get_rule_handle,
        check,
        check_chain,
        check_table,
        new_table,
        delete_table,
        new_chain,
        delete_chain,
        append,
        insert,
        delete,
        flush,
        get_policy,
        set_policy
    ]
);

/// Return the version of nftables.
///
/// CLI Example:
///
///     salt '*' nftables.version
#[function]
pub fn version(context: &Context) -> CallResult {
    let output = nft(context, &["--version"], &[])?;
    let unknown = || CallError::Execution(format!("the version of nftables is unknown: {}", output.stderr));
    Ok(output.stdout.split_whitespace().nth(1).ok_or_else(unknown)?.into())
}

/// Build a rule from options.
///
/// CLI Example:
///
///     salt '*' nftables.build_rule connstate=related,established jump=accept
///     salt '*' nftables.build_rule filter input command=insert position=3 full=True dport=22 proto=tcp jump=accept
#[function]
pub fn build_rule(
    _context: &Context,
    /// Table.
    table: Option<String>,
    /// Chain.
    chain: Option<String>,
    /// `insert`, `add` or `delete`.
    command: Option<String>,
    /// Handle of the rule before which `insert` puts the new one.
    #[default("".into())]
    position: Value,
    /// Whether the whole command is returned, which requires `table`, `chain` and `command`.
    #[default(false)]
    full: bool,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
    /// `if`, `of`, `proto`, `connstate`, `icmp-type`, `icmpv6-type`, `pkttype`, `counter`, `saddr` or `source`, `daddr`
    /// or `destination`, `dport`, `sport`, `dports`, `sports`, and what happens to the packet: `jump`, `redirect-to`,
    /// `to-source`, `to-destination`, `reject-with`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let family = Family::parse(&family)?;
    let report = |comment: &str, rule: &str, result: bool| {
        Ok(map! {"comment" => comment, "rule" => rule, "result" => result}.into())
    };
    let mut rule = match rule::build(kwargs, family) {
        Ok(rule) => rule,
        Err(reason) => return report(&reason, "", false),
    };
    if full {
        let missing = |what: &str| report(&needed(what).comment, &rule, false);
        let Some(table) = given(table) else { return missing("Table") };
        let Some(chain) = given(chain) else { return missing("Chain") };
        let Some(command) = given(command) else { return missing("Command") };
        let is_insert = command.eq_ignore_ascii_case("insert");
        let verb = if is_insert { "insert" } else { &command };
        let place = if is_insert && position.is_truthy() { format!("position {position} ") } else { String::new() };
        rule = format!("nft {verb} rule {} {table} {chain} {place}{rule}", family.word());
    }
    report(if rule.is_empty() { "" } else { "Successfully built rule" }, &rule, true)
}

/// Return the current tables.
///
/// CLI Example:
///
///     salt '*' nftables.list_tables family=ipv6
#[function]
pub fn list_tables(
    context: &Context,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let ruleset = Ruleset::new(context, &family)?;
    let listing = ruleset.read(&["--json"], &["list", "tables", ruleset.family.word()])?;
    Ok(objects(&listing).into_iter().filter_map(|object| object.get("table").cloned()).collect())
}

/// Return the current rules as text, one string a table.
///
/// CLI Example:
///
///     salt '*' nftables.get_rules family=ipv6
#[function]
pub fn get_rules(
    context: &Context,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    Ok(saved::rules(&Ruleset::new(context, &family)?)?.into_iter().collect())
}

/// Return the current rules as nft describes them in JSON.
///
/// CLI Example:
///
///     salt '*' nftables.get_rules_json family=ipv6
#[function]
pub fn get_rules_json(
    context: &Context,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let ruleset = Ruleset::new(context, &family)?;
    let [one, two, three] = NUMERIC;
    let listing = ruleset.read(&[one, two, three, "--json"], &["list", "ruleset", ruleset.family.word()])?;
    Ok(objects(&listing).into())
}

/// The arguments that name a rule of a chain.
#[derive(brine_function::Args)]
pub struct RuleArgs {
    /// Table of the chain.
    #[default("filter".into())]
    table: String,
    /// Name of the chain.
    chain: Option<String>,
    /// Rule in the syntax of nft.
    rule: Option<String>,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp`, `bridge` or `netdev`.
    #[default("ipv4".into())]
    family: String,
}

/// Return the handle of a rule.
///
/// CLI Example:
///
///     salt '*' nftables.get_rule_handle filter input rule='tcp dport 22 log accept'
#[function]
pub fn get_rule_handle(context: &Context, #[args] rule: RuleArgs) -> CallResult {
    let RuleArgs { table, chain, rule, family } = rule;
    let Some(chain) = given(chain) else { return Ok(needed("Chain").into()) };
    let Some(rule) = given(rule) else { return Ok(needed("Rule").into()) };
    let ruleset = Ruleset::new(context, &family)?;
    let report = ruleset.check(&table, &chain, &rule)?;
    if !report.result {
        return Ok(report.into());
    }
    Ok(match ruleset.find(&table, &chain, &rule)? {
        Some(listed) => map! {"result" => true, "handle" => listed.handle.to_string()}.into(),
        // It was deleted in between.
        None => Report::no(format!("Could not find rule {rule}")).into(),
    })
}

/// Return whether a chain has a rule.
///
/// CLI Example:
///
///     salt '*' nftables.check filter input rule='tcp dport 22 log accept'
#[function]
pub fn check(context: &Context, #[args] rule: RuleArgs) -> CallResult {
    let RuleArgs { table, chain, rule, family } = rule;
    let Some(chain) = given(chain) else { return Ok(needed("Chain").into()) };
    let Some(rule) = given(rule) else { return Ok(needed("Rule").into()) };
    Ok(Ruleset::new(context, &family)?.check(&table, &chain, &rule)?.into())
}

/// Return whether a table has a chain.
///
/// CLI Example:
///
///     salt '*' nftables.check_chain filter input
#[function]
pub fn check_chain(
    context: &Context,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Chain.
    chain: Option<String>,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let Some(chain) = given(chain) else { return Ok(needed("Chain").into()) };
    Ok(Ruleset::new(context, &family)?.check_chain(&table, &chain)?.into())
}

/// Return whether a table exists.
///
/// CLI Example:
///
///     salt '*' nftables.check_table nat
#[function]
pub fn check_table(
    context: &Context,
    /// Table.
    table: Option<String>,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let Some(table) = given(table) else { return Ok(needed("Table").into()) };
    Ok(Ruleset::new(context, &family)?.check_table(&table)?.into())
}

/// Create a table unless it exists.
///
/// CLI Example:
///
///     salt '*' nftables.new_table filter family=ipv6
#[function]
pub fn new_table(
    context: &Context,
    /// Table.
    table: String,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let Some(table) = given(Some(table)) else { return Ok(needed("Table").into()) };
    Ok(Ruleset::new(context, &family)?.new_table(&table)?.into())
}

/// Delete a table with its chains and rules.
///
/// CLI Example:
///
///     salt '*' nftables.delete_table filter
#[function]
pub fn delete_table(
    context: &Context,
    /// Table.
    table: String,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let Some(table) = given(Some(table)) else { return Ok(needed("Table").into()) };
    Ok(Ruleset::new(context, &family)?.delete_table(&table)?.into())
}

/// Create a chain.
///
/// CLI Example:
///
///     salt '*' nftables.new_chain filter input table_type=filter hook=input priority=0
///     salt '*' nftables.new_chain filter foo
#[function]
pub fn new_chain(
    context: &Context,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Chain.
    chain: Option<String>,
    /// For a base chain, which requires `hook` and `priority`, too: `filter`, `nat` or `route`.
    table_type: Option<String>,
    /// Packets that the chain receives, such as `input`.
    hook: Option<String>,
    /// Order among the chains of the hook: a number, or a name such as `filter`.
    priority: Option<String>,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let Some(chain) = given(chain) else { return Ok(needed("Chain").into()) };
    let ruleset = Ruleset::new(context, &family)?;
    Ok(match hook_of(table_type, hook, priority) {
        Ok(hook) => ruleset.new_chain(&table, &chain, hook.as_ref())?,
        Err(incomplete) => incomplete,
    }
    .into())
}

/// Delete a chain that has no rules.
///
/// CLI Example:
///
///     salt '*' nftables.delete_chain filter foo
#[function]
pub fn delete_chain(
    context: &Context,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Chain.
    chain: Option<String>,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let Some(chain) = given(chain) else { return Ok(needed("Chain").into()) };
    Ok(Ruleset::new(context, &family)?.delete_chain(&table, &chain)?.into())
}

/// Append a rule to a chain unless it has the rule.
///
/// CLI Example:
///
///     salt '*' nftables.append filter input rule='tcp dport 22 log accept'
#[function]
pub fn append(context: &Context, #[args] rule: RuleArgs) -> CallResult {
    add(context, "add", rule, None)
}

/// Insert a rule into a chain unless it has the rule: before the rule whose handle is `position`, or before all.
///
/// CLI Example:
///
///     salt '*' nftables.insert filter input position=3 rule='tcp dport 22 log accept'
#[function]
pub fn insert(
    context: &Context,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Chain.
    chain: Option<String>,
    /// Handle of a rule.
    position: Option<u64>,
    /// Rule, as of `nftables.build_rule`.
    rule: Option<String>,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    add(context, "insert", RuleArgs { table, chain, rule, family }, position)
}

/// Delete a rule from a chain: the one whose handle is `position`, or `rule`.
///
/// CLI Example:
///
///     salt '*' nftables.delete filter input position=3
///     salt '*' nftables.delete filter input rule='tcp dport 22 log accept'
#[function]
pub fn delete(
    context: &Context,
    /// Table.
    table: String,
    /// Chain.
    chain: Option<String>,
    /// Handle of a rule.
    position: Option<u64>,
    /// Rule, as of `nftables.build_rule`.
    rule: Option<String>,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let rule = given(rule);
    let which = match (position.filter(|position| *position != 0), &rule) {
        (Some(_), Some(_)) => return Ok(Report::no("Only specify a position or a rule, not both").into()),
        (Some(position), None) => Which::Handle(position),
        (None, Some(rule)) => Which::Text(rule),
        (None, None) => return Ok(needed("Rule").into()),
    };
    let Some(chain) = given(chain) else { return Ok(needed("Chain").into()) };
    Ok(Ruleset::new(context, &family)?.delete(&table, &chain, which)?.into())
}

/// Delete all rules of a chain, or of all chains of a table.
///
/// CLI Example:
///
///     salt '*' nftables.flush filter input
#[function]
pub fn flush(
    context: &Context,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Chain.
    #[default]
    chain: String,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    Ok(Ruleset::new(context, &family)?.flush(&table, given(Some(chain)).as_deref())?.into())
}

/// Return the policy of a chain.
///
/// CLI Example:
///
///     salt '*' nftables.get_policy filter input
#[function]
pub fn get_policy(
    context: &Context,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Chain.
    chain: Option<String>,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let Some(chain) = given(chain) else { return Ok("Error: Chain needs to be specified".into()) };
    Ok(Ruleset::new(context, &family)?.policy(&table, &chain)?.into())
}

/// Set the policy of a base chain, `accept` or `drop`, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' nftables.set_policy filter input accept
#[function]
pub fn set_policy(
    context: &Context,
    /// Table.
    #[default("filter".into())]
    table: String,
    /// Chain.
    chain: Option<String>,
    /// `accept` or `drop`.
    policy: Option<String>,
    /// Address family: `ipv4`, `ipv6`, `inet`, `arp` or `bridge`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let Some(chain) = given(chain) else { return Ok("Error: Chain needs to be specified".into()) };
    let Some(policy) = given(policy) else { return Ok("Error: Policy needs to be specified".into()) };
    Ok(Ruleset::new(context, &family)?.set_policy(&table, &chain, &policy)?.into())
}

fn add(context: &Context, verb: &str, rule: RuleArgs, position: Option<u64>) -> CallResult {
    let RuleArgs { table, chain, rule, family } = rule;
    let Some(chain) = given(chain) else { return Ok(needed("Chain").into()) };
    let Some(rule) = given(rule) else { return Ok(needed("Rule").into()) };
    Ok(Ruleset::new(context, &family)?.add(verb, [&table, &chain, &rule], position.filter(|at| *at != 0))?.into())
}

/// Returns an argument that is not empty.
fn given(argument: Option<String>) -> Option<String> {
    argument.filter(|argument| !argument.is_empty())
}

fn needed(what: &str) -> Report {
    Report::no(format!("{what} needs to be specified"))
}

/// Returns the hook of a base chain, which needs all three arguments; without them, the chain has none.
fn hook_of(kind: Option<String>, name: Option<String>, priority: Option<String>) -> Result<Option<Hook>, Report> {
    match (given(kind), given(name), given(priority)) {
        (None, None, None) => Ok(None),
        (Some(kind), Some(name), Some(priority)) => Ok(Some(Hook { kind, name, priority })),
        _ => Err(Report::no("Table_type, hook, and priority required.")),
    }
}
