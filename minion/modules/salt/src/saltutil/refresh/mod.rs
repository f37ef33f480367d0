//! `saltutil`: refreshes pillar and grains, and clears caches.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime};

use brine_context::Context;
use brine_context::jobs::cached_return;
use brine_context::local_bus::{LocalBus, MODULES_REFRESHED, PILLAR_REFRESHED};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_ids::Jid;
use brine_system::user_files;
use brine_value::{Map, Value, map};

/// Directories below `cachedir` whose contents can be fetched or generated again.
const CACHES: &[&str] = &["archive_hash", "extmods", "extrn_files", "files", "gitfs", "localfiles", "minion_jobs"];

/// Execution functions of `saltutil`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "saltutil",
    [
        refresh_pillar,
        pillar_refresh,
        refresh_grains,
        refresh_modules,
        refresh_beacons,
        refresh_matchers,
        list_extmods,
        clear_cache,
        clear_job_cache,
        revoke_auth
    ]
);

/// Refresh the pillar. In a minion it is refreshed when this returns; `salt-call` asks the running minion to refresh its
/// pillar, too, and waits for that with `wait=True`, at most for `timeout` seconds. `clean_cache=False` accepts a pillar
/// that the master has cached.
///
/// CLI Example:
///
///     salt '*' saltutil.refresh_pillar
///     salt '*' saltutil.refresh_pillar wait=True timeout=60
#[function]
pub fn refresh_pillar(
    context: &Context,
    /// Whether the call returns after the pillar has arrived.
    #[default(false)]
    wait: bool,
    /// Seconds to wait for the pillar.
    #[default(30.0)]
    timeout: f64,
    /// Whether the cached pillar is renewed, too.
    #[default(true)]
    clean_cache: bool,
) -> CallResult {
    let config = context.config();
    let (saltenv, pillarenv) = (config.saltenv.as_deref(), config.pillarenv.as_deref());
    let upstream = &context.minion.upstream;
    let fresh = if clean_cache {
        upstream.refreshed_pillar(saltenv, pillarenv)
    } else {
        upstream.pillar(saltenv, pillarenv, &Map::new())
    };
    context.minion.set_pillar(fresh.map_err(CallError::execution)?);
    let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(Duration::MAX);
    refresh_daemon(context, "pillar_refresh", PILLAR_REFRESHED, wait.then_some(timeout));
    Ok(Value::Bool(true))
}

/// Refresh the pillar, as `refresh_pillar`.
///
/// CLI Example:
///
///     salt '*' saltutil.pillar_refresh
#[function]
pub fn pillar_refresh(
    context: &Context,
    /// Whether the call returns after the pillar has arrived.
    #[default(false)]
    wait: bool,
    /// Seconds to wait for the pillar.
    #[default(30.0)]
    timeout: f64,
    /// Whether the cached pillar is renewed, too.
    #[default(true)]
    clean_cache: bool,
) -> CallResult {
    refresh_pillar(context, wait, timeout, clean_cache)
}

/// Collect the grains again, then refresh the pillar unless `refresh_pillar` is false.
///
/// CLI Example:
///
///     salt '*' saltutil.refresh_grains
#[function]
pub fn refresh_grains(
    context: &Context,
    /// Whether the pillar is refreshed afterwards.
    #[default(true)]
    refresh_pillar: bool,
    /// Whether the cached pillar is renewed, too.
    #[default(false)]
    clean_pillar_cache: bool,
) -> CallResult {
    context.minion.grains.set(context.minion.collect_grains());
    notify_daemon(context, "grains_refresh");
    if refresh_pillar {
        return self::refresh_pillar(context, false, 0.0, clean_pillar_cache);
    }
    Ok(Value::Bool(true))
}

/// Reload custom modules with the next call of one of their functions. With `notify`, an event on the minion's bus tells
/// that they are reloaded.
///
/// CLI Example:
///
///     salt '*' saltutil.refresh_modules
#[function]
pub fn refresh_modules(
    context: &Context,
    /// `notify`: whether an event tells that they are reloaded.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    context.minion.custom.refresh();
    if kwargs.get("notify").is_some_and(Value::is_truthy) {
        refresh_daemon(context, "module_refresh", MODULES_REFRESHED, None);
    }
    Ok(Value::Bool(true))
}

/// Ask the master to delete this minion's key: it must be accepted again. Returns whether the master was reached.
///
/// CLI Example:
///
///     salt '*' saltutil.revoke_auth
#[function]
pub fn revoke_auth(
    context: &Context,
    /// Whether the master keeps the grains, pillar and mine of this minion.
    #[default(false)]
    preserve_minion_cache: bool,
) -> CallResult {
    let load = map! {
        "cmd" => "revoke_auth", "id" => context.minion.id.as_str(), "preserve_minion_cache" => preserve_minion_cache,
    };
    let answer = context.minion.upstream.ask(load);
    if let Err(error) = &answer {
        tracing::error!(jid = context.job.jid, %error, "asking the master to revoke the key failed");
    }
    Ok(answer.is_ok().into())
}

/// Do nothing: changes of beacons take effect immediately.
///
/// CLI Example:
///
///     salt '*' saltutil.refresh_beacons
#[function]
pub fn refresh_beacons(_context: &Context) -> CallResult {
    Ok(Value::Bool(true))
}

/// Do nothing: matchers are part of Brine.
///
/// CLI Example:
///
///     salt '*' saltutil.refresh_matchers
#[function]
pub fn refresh_matchers(_context: &Context) -> CallResult {
    Ok(Value::Bool(true))
}

/// List the modules that were synced from the file server, by type: each with its files.
///
/// CLI Example:
///
///     salt '*' saltutil.list_extmods
#[function]
pub fn list_extmods(context: &Context) -> CallResult {
    let synced = brine_context::custom::extension_modules(context.config());
    let names = |directory: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let module = |file: &String| file.split('.').next().unwrap_or_default().to_owned();
    let mut kinds = Map::new();
    for kind in names(&synced) {
        let mut modules: Vec<String> = names(&synced.join(&kind)).iter().map(module).collect();
        modules.dedup();
        kinds.insert(kind.into(), modules.into());
    }
    Ok(Value::Map(kinds))
}

/// Remove the minion's caches: copies of files, and returns of former jobs. Returns that the master has not
/// received, the datastore and backups of files are kept, as they are not caches. Returns false if a cache cannot
/// be removed.
///
/// CLI Example:
///
///     salt '*' saltutil.clear_cache
#[function]
pub fn clear_cache(context: &Context) -> CallResult {
    let cachedir = &context.config().cachedir;
    let failures = CACHES.iter().filter(|name| !remove(&cachedir.join(name))).count();
    Ok((failures == 0).into())
}

/// Remove the returns of jobs that ended more than `hours` ago from the minion's job cache.
///
/// CLI Example:
///
///     salt '*' saltutil.clear_job_cache hours=12
#[function]
pub fn clear_job_cache(
    context: &Context,
    /// Age in hours from which cached jobs are removed.
    #[default(24)]
    hours: u64,
) -> CallResult {
    // Each job has its own directory there.
    let place = cached_return(&context.minion, "x");
    let directory = place.ancestors().nth(2).unwrap_or(&place);
    let oldest = SystemTime::now().checked_sub(Duration::from_secs(hours.saturating_mul(3600)));
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let old = entry
            .metadata()
            .and_then(|status| status.modified())
            .is_ok_and(|time| oldest.is_some_and(|oldest| time < oldest));
        let is_job = entry.file_name().to_str().is_some_and(|name| name.parse::<Jid>().is_ok());
        if old && is_job {
            user_files::remove_dir_all(entry.path()).map_err(CallError::execution)?;
        }
    }
    Ok(Value::Bool(true))
}

/// Notifies a running daemon after a refresh by `salt-call`, so that it also refreshes.
pub(super) fn notify_daemon(context: &Context, tag: &str) {
    if let LocalBus::Sockets { .. } = context.minion.local
        && let Err(error) = context.minion.local.fire(tag, &Map::new())
    {
        tracing::debug!(tag, %error, "no running minion to notify of the refresh");
    }
}

/// Tells the bus of the minion that a refresh is complete. The running minion of a `salt-call` refreshes first, and with
/// a timeout this waits for it.
fn refresh_daemon(context: &Context, tag: &str, completed: &str, timeout: Option<Duration>) {
    let bus = &context.minion.local;
    let told = match (bus, timeout) {
        (LocalBus::Own { .. }, _) => bus.fire(completed, &map! {"complete" => true}).map(|()| true),
        (_, Some(timeout)) => bus.ask(tag, Map::new(), completed, timeout).map(|answer| answer.is_some()),
        (_, None) => bus.fire(tag, &map! {"notify" => true}).map(|()| true),
    };
    match told {
        Ok(true) => {}
        Ok(false) => tracing::warn!(tag, ?timeout, "the running minion has not completed the refresh in time"),
        Err(error) => tracing::debug!(tag, %error, "no running minion to notify of the refresh"),
    }
}

/// Removes a directory and returns whether it is gone.
fn remove(path: &Path) -> bool {
    // A file in its place is not a cache.
    let removed = if path.is_file() { Err(ErrorKind::NotADirectory.into()) } else { user_files::remove_dir_all(path) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::error!(path = %path.display(), %error, "clearing a cache failed");
            false
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests;
