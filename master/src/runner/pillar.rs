//! `pillar`: what minions would be told, and the cache of it.

use brine_function::{CallError, functions};
use brine_ids::MinionId;
use brine_value::{Map, Value};
use brine_wire::PublishRequest;

use super::RunnerContext;
use crate::pillar::Asked;

functions! {
    module "pillar", context RunnerContext;

    /// The pillar of a minion, rendered with the grains that it had when it last asked, or with others that are named.
    ///
    /// CLI Example:
    ///
    ///     salt-run pillar.show_pillar web1
    ///     salt-run pillar.show_pillar web1 pillarenv=dev os=Debian
    fn show_pillar(context, minion: String = "*".into(), saltenv: Option<String> = None, pillarenv: Option<String> = None, **kwargs) {
        // `*` is no minion: the pillar that everybody gets.
        let id = if minion == "*" { "_".parse() } else { minion.parse() };
        let id: MinionId = id.map_err(|error| CallError::execution(format!("{minion} is no minion id: {error}")))?;
        let mut grains = context.disk().minion_data.grains(id.as_str()).unwrap_or_else(|| {
            brine_value::map! {"fqdn" => &minion}
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
    fn clear_pillar_cache(context, minion: String = "*".into(), **_kwargs) {
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
    fn show_pillar_cache(context, minion: String = "*".into(), pillarenv: Option<String> = None, **_kwargs) {
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
}

/// The minions that a glob means.
fn meant(context: &RunnerContext, glob: &str) -> Result<Vec<MinionId>, CallError> {
    let request = PublishRequest { tgt: glob.into(), ..PublishRequest::new("*", "test.ping", &context.caller.user) };
    let (ids, _) = context.wait(context.master.targets(&request)).map_err(CallError::execution)?;
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}
