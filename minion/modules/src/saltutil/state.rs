//! `saltutil`: what a minion brings over from the master's `_modules` and its like, as states.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Function, function, registry};
use brine_value::{Map, Value, map};

/// State functions of `saltutil`.
pub static FUNCTIONS: &[Function<StateContext>] = registry!(
    "saltutil",
    [
        sync_all,
        sync_beacons,
        sync_clouds,
        sync_engines,
        sync_executors,
        sync_grains,
        sync_log_handlers,
        sync_matchers,
        sync_modules,
        sync_output,
        sync_outputters,
        sync_pillar,
        sync_proxymodules,
        sync_renderers,
        sync_resources,
        sync_returners,
        sync_sdb,
        sync_serializers,
        sync_states,
        sync_thorium,
        sync_tops,
        sync_utils,
        sync_wrapper
    ]
);

/// All of `_modules` and its like as the master has it.
#[function]
pub fn sync_all(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "all", kwargs)
}

/// `_beacons` as the master has it.
#[function]
pub fn sync_beacons(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "beacons", kwargs)
}

/// `_clouds` as the master has it.
#[function]
pub fn sync_clouds(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "clouds", kwargs)
}

/// `_engines` as the master has it.
#[function]
pub fn sync_engines(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "engines", kwargs)
}

/// `_executors` as the master has it.
#[function]
pub fn sync_executors(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "executors", kwargs)
}

/// `_grains` as the master has it.
#[function]
pub fn sync_grains(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "grains", kwargs)
}

/// `_log_handlers` as the master has it.
#[function]
pub fn sync_log_handlers(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "log_handlers", kwargs)
}

/// `_matchers` as the master has it.
#[function]
pub fn sync_matchers(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "matchers", kwargs)
}

/// `_modules` as the master has it.
#[function]
pub fn sync_modules(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "modules", kwargs)
}

/// `_output` as the master has it.
#[function]
pub fn sync_output(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "output", kwargs)
}

/// `_outputters` as the master has it.
#[function]
pub fn sync_outputters(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "outputters", kwargs)
}

/// `_pillar` as the master has it.
#[function]
pub fn sync_pillar(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "pillar", kwargs)
}

/// `_proxymodules` as the master has it.
#[function]
pub fn sync_proxymodules(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "proxymodules", kwargs)
}

/// `_renderers` as the master has it.
#[function]
pub fn sync_renderers(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "renderers", kwargs)
}

/// `_resources` as the master has it.
#[function]
pub fn sync_resources(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "resources", kwargs)
}

/// `_returners` as the master has it.
#[function]
pub fn sync_returners(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "returners", kwargs)
}

/// `_sdb` as the master has it.
#[function]
pub fn sync_sdb(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "sdb", kwargs)
}

/// `_serializers` as the master has it.
#[function]
pub fn sync_serializers(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "serializers", kwargs)
}

/// `_states` as the master has it.
#[function]
pub fn sync_states(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "states", kwargs)
}

/// `_thorium` as the master has it.
#[function]
pub fn sync_thorium(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "thorium", kwargs)
}

/// `_tops` as the master has it.
#[function]
pub fn sync_tops(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "tops", kwargs)
}

/// `_utils` as the master has it.
#[function]
pub fn sync_utils(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "utils", kwargs)
}

/// `_wrapper` as the master has it.
#[function]
pub fn sync_wrapper(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    synced(context, &name, "wrapper", kwargs)
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
