//! `match`: whether minions match a target, by the data that the master has stored.

use brine_function::{CallResult, Functions, function, registry};
use brine_ids::MinionId;
use brine_target::TargetKind;
use brine_value::{Value, map};

use super::RunnerContext;

/// Runner functions of `match`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("match", [compound_matches]);

/// Return whether a compound expression matches a minion: its id below `res`, or False. Pillar values are compared
/// literally. An invalid expression, or a minion without an accepted key, matches nothing.
///
/// CLI Example:
///
///     salt-run match.compound_matches 'I@foo:bar and G@os:Deb* and not db*' myminion
#[function]
pub fn compound_matches(
    context: &RunnerContext,
    /// The expression.
    expr: String,
    /// The id of the minion.
    minion_id: String,
) -> CallResult {
    let matches = matches(context, &expr, &minion_id).unwrap_or_else(|error| {
        tracing::warn!(minion = %minion_id, expr, error, "matching a minion failed");
        false
    });
    let result = if matches { Value::from(minion_id) } else { false.into() };
    Ok(map! {"res" => result}.into())
}

fn matches(context: &RunnerContext, expr: &str, minion: &str) -> Result<bool, String> {
    if !context.master.config.minion_data_cache {
        return Err("there are no stored grains and pillars: set minion_data_cache to True".into());
    }
    let id: MinionId = minion.parse().map_err(|error| format!("{error}"))?;
    let target =
        context.master.facts.target(TargetKind::Compound, expr.into(), ":").map_err(|error| error.to_string())?;
    let storage = context.storage();
    let is_accepted = storage.accepted().map_err(|error| error.to_string())?.iter().any(|other| other == minion);
    Ok(is_accepted && target.with_exact_pillar().matches(&storage.minion_data.facts(id.as_str())))
}
