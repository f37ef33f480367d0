//! `saltutil`: states of custom modules synced from the master.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, Others, ParamList, function, registry};
use brine_value::{Map, Value, map};

/// State functions of `saltutil`.
pub static FUNCTIONS: Functions<StateContext> = registry!(
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

/// Ensure that all custom modules are synced from the master.
///
/// SLS Example:
///
///     sync_all:
///       saltutil.sync_all:
///         - refresh: True
#[function]
pub fn sync_all(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "all", kwargs)
}

/// Ensure that `_beacons` is synced from the master.
///
/// SLS Example:
///
///     sync_beacons:
///       saltutil.sync_beacons:
///         - refresh: True
#[function]
pub fn sync_beacons(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "beacons", kwargs)
}

/// Ensure that `_clouds` is synced from the master.
///
/// SLS Example:
///
///     sync_clouds:
///       saltutil.sync_clouds:
///         - refresh: True
#[function]
pub fn sync_clouds(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "clouds", kwargs)
}

/// Ensure that `_engines` is synced from the master.
///
/// SLS Example:
///
///     sync_engines:
///       saltutil.sync_engines:
///         - refresh: True
#[function]
pub fn sync_engines(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "engines", kwargs)
}

/// Ensure that `_executors` is synced from the master.
///
/// SLS Example:
///
///     sync_executors:
///       saltutil.sync_executors:
///         - refresh: True
#[function]
pub fn sync_executors(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "executors", kwargs)
}

/// Ensure that `_grains` is synced from the master.
///
/// SLS Example:
///
///     sync_grains:
///       saltutil.sync_grains:
///         - refresh: True
#[function]
pub fn sync_grains(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "grains", kwargs)
}

/// Ensure that `_log_handlers` is synced from the master.
///
/// SLS Example:
///
///     sync_log_handlers:
///       saltutil.sync_log_handlers:
///         - refresh: True
#[function]
pub fn sync_log_handlers(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "log_handlers", kwargs)
}

/// Ensure that `_matchers` is synced from the master.
///
/// SLS Example:
///
///     sync_matchers:
///       saltutil.sync_matchers:
///         - refresh: True
#[function]
pub fn sync_matchers(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "matchers", kwargs)
}

/// Ensure that `_modules` is synced from the master.
///
/// SLS Example:
///
///     sync_modules:
///       saltutil.sync_modules:
///         - refresh: True
#[function]
pub fn sync_modules(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "modules", kwargs)
}

/// Ensure that `_output` is synced from the master.
///
/// SLS Example:
///
///     sync_output:
///       saltutil.sync_output:
///         - refresh: True
#[function]
pub fn sync_output(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "output", kwargs)
}

/// Ensure that `_outputters` is synced from the master.
///
/// SLS Example:
///
///     sync_outputters:
///       saltutil.sync_outputters:
///         - refresh: True
#[function]
pub fn sync_outputters(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "outputters", kwargs)
}

/// Ensure that `_pillar` is synced from the master.
///
/// SLS Example:
///
///     sync_pillar:
///       saltutil.sync_pillar:
///         - refresh: True
#[function]
pub fn sync_pillar(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "pillar", kwargs)
}

/// Ensure that `_proxymodules` is synced from the master.
///
/// SLS Example:
///
///     sync_proxymodules:
///       saltutil.sync_proxymodules:
///         - refresh: True
#[function]
pub fn sync_proxymodules(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "proxymodules", kwargs)
}

/// Ensure that `_renderers` is synced from the master.
///
/// SLS Example:
///
///     sync_renderers:
///       saltutil.sync_renderers:
///         - refresh: True
#[function]
pub fn sync_renderers(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "renderers", kwargs)
}

/// Ensure that `_resources` is synced from the master.
///
/// SLS Example:
///
///     sync_resources:
///       saltutil.sync_resources:
///         - refresh: True
#[function]
pub fn sync_resources(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "resources", kwargs)
}

/// Ensure that `_returners` is synced from the master.
///
/// SLS Example:
///
///     sync_returners:
///       saltutil.sync_returners:
///         - refresh: True
#[function]
pub fn sync_returners(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "returners", kwargs)
}

/// Ensure that `_sdb` is synced from the master.
///
/// SLS Example:
///
///     sync_sdb:
///       saltutil.sync_sdb:
///         - refresh: True
#[function]
pub fn sync_sdb(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "sdb", kwargs)
}

/// Ensure that `_serializers` is synced from the master.
///
/// SLS Example:
///
///     sync_serializers:
///       saltutil.sync_serializers:
///         - refresh: True
#[function]
pub fn sync_serializers(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "serializers", kwargs)
}

/// Ensure that `_states` is synced from the master.
///
/// SLS Example:
///
///     sync_states:
///       saltutil.sync_states:
///         - refresh: True
#[function]
pub fn sync_states(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "states", kwargs)
}

/// Ensure that `_thorium` is synced from the master.
///
/// SLS Example:
///
///     sync_thorium:
///       saltutil.sync_thorium:
///         - refresh: True
#[function]
pub fn sync_thorium(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "thorium", kwargs)
}

/// Ensure that `_tops` is synced from the master.
///
/// SLS Example:
///
///     sync_tops:
///       saltutil.sync_tops:
///         - refresh: True
#[function]
pub fn sync_tops(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "tops", kwargs)
}

/// Ensure that `_utils` is synced from the master.
///
/// SLS Example:
///
///     sync_utils:
///       saltutil.sync_utils:
///         - refresh: True
#[function]
pub fn sync_utils(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "utils", kwargs)
}

/// Ensure that `_wrapper` is synced from the master.
///
/// SLS Example:
///
///     sync_wrapper:
///       saltutil.sync_wrapper:
///         - refresh: True
#[function]
pub fn sync_wrapper(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    synced(context, &name, "wrapper", kwargs)
}

fn synced(context: &StateContext, name: &str, kind: &str, kwargs: Map) -> Result<Value, CallError> {
    if context.test {
        return Ok(StateReturn::predicted(name, format!("saltutil.sync_{kind} would have been run")).into());
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

/// Describes the arguments of the execution functions that synchronize modules.
pub(crate) fn further(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further(
        "saltenv",
        "a string",
        "Environment of the file server, or several with commas; those of the top file by default.",
    );
    params.further(
        "refresh",
        "True or False",
        "Whether modules, grains and pillar are loaded again after a change; true by default.",
    );
    for name in ["extmod_whitelist", "extmod_blacklist"] {
        params.further(
            name,
            "a string",
            "Names of the modules that are synchronized, or left out, as a list or with commas.",
        );
    }
    params.further("clean_pillar_cache", "True or False", "Whether the cached pillar is renewed, too.");
}
