//! Inserts and deletes rules.

use brine_context::Context;
use brine_function::{CallResult, function};
use brine_value::Value;

use super::{Tables, rule};

/// Insert a rule into a chain at a position; a negative one counts from the end. Returns the error output, or
/// false if the rule exists.
///
/// CLI Example:
///
///     salt '*' iptables.insert filter INPUT position=3 rule='-m state --state RELATED,ESTABLISHED -j ACCEPT'
#[function]
pub fn insert(
    context: &Context,
    /// Table, such as `filter`.
    #[default("filter".into())]
    table: String,
    /// Chain, such as `INPUT`.
    chain: String,
    /// Position of the new rule; 1 is the first, and a negative one counts from the end.
    position: i64,
    /// Options of the rule, as `iptables.build_rule` returns them.
    rule: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let tables = Tables::new(context, &family)?;
    let mut position = position;
    if position < 0 {
        let rules = tables.rules()?;
        let rules = rules.get(table.as_str()).and_then(|chains| chains.get(chain.as_str())?.get("rules")?.as_list());
        let count = i64::try_from(rules.map_or(0, <[Value]>::len)).unwrap_or(i64::MAX);
        position = count.saturating_add(position).saturating_add(1).max(1);
    }
    if tables.has(&table, &chain, &rule)? {
        return Ok(false.into());
    }
    Ok(tables.change(&table, &format!("-I {chain} {position} {rule}"))?.into())
}

/// Delete a rule from a chain, by its options or its position, and return the error output.
///
/// CLI Example:
///
///     salt '*' iptables.delete filter INPUT position=3
#[function]
pub fn delete(
    context: &Context,
    /// Table, such as `filter`.
    table: String,
    /// Chain, such as `INPUT`.
    chain: String,
    /// Position of the rule; 1 is the first. Not together with `rule`.
    position: Option<i64>,
    /// Options of the rule, as `iptables.build_rule` returns them.
    rule: Option<String>,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    let what = match (position, rule) {
        (Some(_), Some(_)) => return Ok("Error: Only specify a position or a rule, not both".into()),
        (Some(position), None) => position.to_string(),
        (None, rule) => rule.unwrap_or_default(),
    };
    Ok(Tables::new(context, &family)?.change(&table, &format!("-D {chain} {what}"))?.into())
}

/// Delete all rules of a chain, or of all chains, and return the error output.
///
/// CLI Example:
///
///     salt '*' iptables.flush filter INPUT
#[function]
pub fn flush(
    context: &Context,
    /// Table, such as `filter`.
    #[default("filter".into())]
    table: String,
    /// Chain; all chains of the table by default.
    #[default]
    chain: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    Ok(Tables::new(context, &family)?.change(&table, &format!("-F {}", rule::name(&chain)?))?.into())
}
