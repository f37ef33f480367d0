//! `pillar`: what minions would be told, and the cache of it.

use brine_core::function::{CallError, CallResult, Function, function, registry};
use brine_core::wire::PublishRequest;
use brine_core::{Map, MinionId, Value};

use super::RunnerContext;
use crate::pillar::Asked;

/// Runner functions of `pillar`.
pub static FUNCTIONS: &[Function<RunnerContext>] =
    registry!("pillar", [show_pillar, clear_pillar_cache, show_pillar_cache]);

/// The pillar of a minion, rendered with the grains that it had when it last asked, or with others that are named.
///
/// CLI Example:
///
///     salt-run pillar.show_pillar web1
///     salt-run pillar.show_pillar web1 pillarenv=dev os=Debian
#[function]
pub fn show_pillar(
    context: &RunnerContext,
    #[default("*".into())] minion: String,
    #[default] saltenv: Option<String>,
    #[default] pillarenv: Option<String>,
    #[keywords] kwargs: Map,
) -> CallResult {
    // `*` is no minion: the pillar that everybody gets.
    let id = if minion == "*" { "_".parse() } else { minion.parse() };
    let id: MinionId = id.map_err(|error| CallError::execution(format!("{minion} is no minion id: {error}")))?;
    let mut grains = context.disk().minion_data.grains(id.as_str()).unwrap_or_else(|| {
        brine_core::map! {"fqdn" => &minion}
    });
    grains.extend(kwargs.into_iter().filter(|(name, _)| name.as_str().is_none_or(|name| !name.starts_with("__pub_"))));
    let asked = Asked { id, grains, saltenv, pillarenv, over: Map::new(), anew: true };
    Ok(context.master.render_pillar(&asked, &context.caller.thread).into())
}

/// Forgets the pillars that are kept (`pillar_cache`) for the minions that a glob means.
///
/// CLI Example:
///
///     salt-run pillar.clear_pillar_cache 'web*'
#[function]
pub fn clear_pillar_cache(
    context: &RunnerContext,
    #[default("*".into())] minion: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    if !context.master.config.pillar_cache {
        return Ok(false.into());
    }
    meant(context, &minion)?.iter().for_each(|id| context.master.pillar_cache.forget(id));
    Ok(true.into())
}

/// The pillars that are kept (`pillar_cache`) for the minions that a glob means.
///
/// CLI Example:
///
///     salt-run pillar.show_pillar_cache web1
#[function]
pub fn show_pillar_cache(
    context: &RunnerContext,
    #[default("*".into())] minion: String,
    #[default] pillarenv: Option<String>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let master = &context.master;
    if !master.config.pillar_cache {
        return Ok(false.into());
    }
    let lifetime = std::time::Duration::from_secs(master.config.pillar_cache_ttl);
    let kept = |id: &MinionId| master.pillar_cache.get(id, pillarenv.as_deref(), lifetime);
    let found = meant(context, &minion)?;
    let pillars = found.iter().filter_map(|id| Some((Value::from(id), Value::from(kept(id)?))));
    Ok(Value::Map(pillars.collect()))
}

/// The minions that a glob means.
fn meant(context: &RunnerContext, glob: &str) -> Result<Vec<MinionId>, CallError> {
    let request = PublishRequest { tgt: glob.into(), ..PublishRequest::new("*", "test.ping", &context.caller.user) };
    let (ids, _) = context.wait(context.master.targets(&request)).map_err(CallError::execution)?;
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}
