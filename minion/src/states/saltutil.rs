//! `saltutil`: what a minion brings over from the master's `_modules` and its like, as states.

use brine_function::{Args, CallError, functions};
use brine_value::{Map, Value, map};

use super::{StateContext, StateReturn};

functions! {
    module "saltutil", context StateContext;

    /// All of `_modules` and its like as the master has it.
    fn sync_all(context, name: String, **kwargs) {
        synced(context, &name, "all", kwargs)
    }

    /// `_beacons` as the master has it.
    fn sync_beacons(context, name: String, **kwargs) {
        synced(context, &name, "beacons", kwargs)
    }

    /// `_clouds` as the master has it.
    fn sync_clouds(context, name: String, **kwargs) {
        synced(context, &name, "clouds", kwargs)
    }

    /// `_engines` as the master has it.
    fn sync_engines(context, name: String, **kwargs) {
        synced(context, &name, "engines", kwargs)
    }

    /// `_executors` as the master has it.
    fn sync_executors(context, name: String, **kwargs) {
        synced(context, &name, "executors", kwargs)
    }

    /// `_grains` as the master has it.
    fn sync_grains(context, name: String, **kwargs) {
        synced(context, &name, "grains", kwargs)
    }

    /// `_log_handlers` as the master has it.
    fn sync_log_handlers(context, name: String, **kwargs) {
        synced(context, &name, "log_handlers", kwargs)
    }

    /// `_matchers` as the master has it.
    fn sync_matchers(context, name: String, **kwargs) {
        synced(context, &name, "matchers", kwargs)
    }

    /// `_modules` as the master has it.
    fn sync_modules(context, name: String, **kwargs) {
        synced(context, &name, "modules", kwargs)
    }

    /// `_output` as the master has it.
    fn sync_output(context, name: String, **kwargs) {
        synced(context, &name, "output", kwargs)
    }

    /// `_outputters` as the master has it.
    fn sync_outputters(context, name: String, **kwargs) {
        synced(context, &name, "outputters", kwargs)
    }

    /// `_pillar` as the master has it.
    fn sync_pillar(context, name: String, **kwargs) {
        synced(context, &name, "pillar", kwargs)
    }

    /// `_proxymodules` as the master has it.
    fn sync_proxymodules(context, name: String, **kwargs) {
        synced(context, &name, "proxymodules", kwargs)
    }

    /// `_renderers` as the master has it.
    fn sync_renderers(context, name: String, **kwargs) {
        synced(context, &name, "renderers", kwargs)
    }

    /// `_resources` as the master has it.
    fn sync_resources(context, name: String, **kwargs) {
        synced(context, &name, "resources", kwargs)
    }

    /// `_returners` as the master has it.
    fn sync_returners(context, name: String, **kwargs) {
        synced(context, &name, "returners", kwargs)
    }

    /// `_sdb` as the master has it.
    fn sync_sdb(context, name: String, **kwargs) {
        synced(context, &name, "sdb", kwargs)
    }

    /// `_serializers` as the master has it.
    fn sync_serializers(context, name: String, **kwargs) {
        synced(context, &name, "serializers", kwargs)
    }

    /// `_states` as the master has it.
    fn sync_states(context, name: String, **kwargs) {
        synced(context, &name, "states", kwargs)
    }

    /// `_thorium` as the master has it.
    fn sync_thorium(context, name: String, **kwargs) {
        synced(context, &name, "thorium", kwargs)
    }

    /// `_tops` as the master has it.
    fn sync_tops(context, name: String, **kwargs) {
        synced(context, &name, "tops", kwargs)
    }

    /// `_utils` as the master has it.
    fn sync_utils(context, name: String, **kwargs) {
        synced(context, &name, "utils", kwargs)
    }

    /// `_wrapper` as the master has it.
    fn sync_wrapper(context, name: String, **kwargs) {
        synced(context, &name, "wrapper", kwargs)
    }
}

fn synced(context: &StateContext, name: &str, kind: &str, kwargs: Map) -> Result<Value, CallError> {
    if context.test {
        return Ok(StateReturn::would(name, format!("saltutil.sync_{kind} would have been run")).into());
    }
    let brought = match context.call.call(&format!("saltutil.sync_{kind}"), Args::keyword(kwargs)) {
        Ok(brought) => brought,
        Err(error) => return Ok(StateReturn::failed(name, format!("Failed to run sync_{kind}: {error}")).into()),
    };
    let (changes, comment) = match brought {
        Value::Map(all) => {
            (all.into_iter().filter(|(_, brought)| brought.is_truthy()).collect(), "Sync performed".into())
        }
        brought if brought.is_truthy() => (map! {kind => brought}, format!("Updated {kind}.")),
        _ => (Map::new(), String::new()),
    };
    let comment = if changes.is_empty() { "No updates to sync".to_owned() } else { comment };
    Ok(StateReturn::ok(name, comment).with_changes(changes).into())
}
