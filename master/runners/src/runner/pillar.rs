//! `pillar`: rendered pillars of minions, and their cache.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_ids::MinionId;
use brine_master_facts::pillars::PillarQuery;
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use super::RunnerContext;

/// Runner functions of `pillar`.
pub static FUNCTIONS: Functions<RunnerContext> =
    registry!("pillar", [show_pillar, show_top, clear_pillar_cache, show_pillar_cache]);

/// Return the pillar of a minion, rendered with the grains of its last pillar request; named grains override those.
///
/// CLI Example:
///
///     salt-run pillar.show_pillar web1
///     salt-run pillar.show_pillar web1 pillarenv=dev os=Debian
#[function(secret)]
pub fn show_pillar(
    context: &RunnerContext,
    /// Id of the minion.
    #[default("*".into())]
    minion: String,
    /// Environment of the pillar.
    saltenv: Option<String>,
    /// Environment of the pillar.
    pillarenv: Option<String>,
    /// Grains over those of the minion.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let query = PillarQuery { pillarenv, ..query(context, &minion, saltenv, kwargs)? };
    Ok(context.master.pillars.render(&query, &context.calls.template_host()(&context.caller.thread)).into())
}

/// Return the top files of the pillar, of all environments, as they are rendered for a minion.
///
/// CLI Example:
///
///     salt-run pillar.show_top web1
#[function]
pub fn show_top(
    context: &RunnerContext,
    /// The id of the minion; the first accepted one if it is left out.
    minion: Option<String>,
    /// Environment of the pillar.
    saltenv: Option<String>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let first = || Ok::<_, CallError>(context.minions("*".into(), "glob".into())?.into_iter().next());
    let minion = minion.map_or_else(first, |minion| Ok(Some(minion)))?.unwrap_or_else(|| "*".into());
    let query = query(context, &minion, saltenv, Map::new())?;
    let (top, errors) = context.master.pillars.top(&query, &context.calls.template_host()(&context.caller.thread));
    if errors.is_empty() {
        return Ok(top.into());
    }
    context.progress_event(&map! {"data" => errors.clone(), "outputter" => "nested"});
    Ok(errors.into())
}

/// Remove the cached pillars (`pillar_cache`) of minions that match a glob.
///
/// CLI Example:
///
///     salt-run pillar.clear_pillar_cache 'web*'
#[function]
pub fn clear_pillar_cache(
    context: &RunnerContext,
    /// Id of the minion.
    #[default("*".into())]
    minion: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    if !context.master.config.pillar_cache {
        return Ok(false.into());
    }
    matching_minions(context, &minion)?.iter().for_each(|id| context.master.pillars.cache.remove(id));
    Ok(true.into())
}

/// Return the cached pillars (`pillar_cache`) of minions that match a glob.
///
/// CLI Example:
///
///     salt-run pillar.show_pillar_cache web1
#[function(secret)]
pub fn show_pillar_cache(
    context: &RunnerContext,
    /// Id of the minion.
    #[default("*".into())]
    minion: String,
    /// Environment of the pillar.
    pillarenv: Option<String>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let master = &context.master;
    if !master.config.pillar_cache {
        return Ok(false.into());
    }
    let lifetime = std::time::Duration::from_secs(master.config.pillar_cache_ttl);
    let cached_pillar = |id: &MinionId| master.pillars.cache.get(id, pillarenv.as_deref(), lifetime);
    let minions = matching_minions(context, &minion)?;
    let pillars = minions.iter().filter_map(|id| Some((Value::from(id), Value::from(cached_pillar(id)?))));
    Ok(Value::Map(pillars.collect()))
}

/// Returns the minions that match a glob.
fn matching_minions(context: &RunnerContext, glob: &str) -> Result<Vec<MinionId>, CallError> {
    let request = PublishRequest { tgt: glob.into(), ..PublishRequest::new("*", "test.ping", &context.caller.user) };
    let ids = context.wait(context.master.facts.targets(&request)).map_err(CallError::execution)?;
    Ok(ids.minions.iter().filter_map(|id| id.parse().ok()).collect())
}

/// Returns the request for a minion's pillar, with the grains of its last pillar request, overridden by `over`.
fn query(context: &RunnerContext, minion: &str, saltenv: Option<String>, over: Map) -> Result<PillarQuery, CallError> {
    // `*` is not a minion: it requests the pillar that all minions share.
    let id = if minion == "*" { "_".parse() } else { minion.parse() };
    let id: MinionId = id.map_err(|error| CallError::execution(format!("{minion} is not a minion id: {error}")))?;
    let mut grains =
        context.storage().minion_data.grains(id.as_str()).unwrap_or_else(|| brine_value::map! {"fqdn" => minion});
    grains.extend(over.into_iter().filter(|(name, _)| name.as_str().is_none_or(|name| !name.starts_with("__pub_"))));
    Ok(PillarQuery {
        id,
        grains,
        saltenv,
        pillarenv: None,
        pillar_override: Map::new(),
        ext: None,
        extra_minion_data: Map::new(),
        clean_cache: true,
    })
}
