//! Syncs custom modules before a run.

use brine_context::Context;
use brine_function::arguments::names;
use brine_function::{Args, CallError};
use brine_value::{Value, map};

/// Syncs all types at the start of a highstate (`autoload_dynamic_modules`). As in Salt, a failure does not stop the
/// run.
pub(super) fn autoload(context: &Context) {
    if !context.config().autoload_dynamic_modules {
        return;
    }
    match context.call("saltutil.sync_all", Args::keyword(map! {"refresh" => false})) {
        Ok(synced) if synced.get("grains").is_some_and(Value::is_truthy) => {
            context.minion.grains.set(context.minion.collect_grains());
        }
        Ok(_) => {}
        Err(error) => tracing::error!(%error, "syncing custom modules failed"),
    }
}

/// Syncs the types in the argument `sync_mods`: a list, a comma-separated string, or `all`.
///
/// # Errors
/// A type is unknown, or a sync fails.
pub(super) fn sync(context: &Context, sync_mods: &Value) -> Result<(), CallError> {
    for kind in names(sync_mods) {
        // As in Salt, `True` means all.
        let kind = if kind == "True" { "all" } else { &*kind };
        context.call(&format!("saltutil.sync_{kind}"), Args::default())?;
    }
    Ok(())
}
