//! `fileserver`: environments and files of the master's file server.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_master_custom::files;
use brine_value::{FromValue, Map, Value, map};

use super::RunnerContext;

/// Runner functions of `fileserver`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!(
    "fileserver",
    [
        envs,
        update,
        file_list,
        dir_list,
        empty_dir_list,
        symlink_list,
        clear_cache,
        clear_file_list_cache,
        clear_lock,
        lock
    ]
);

/// The names of the built-in backends.
const BACKENDS: [&str; 4] = ["roots", "gitfs", "git", "minionfs"];

/// Return the environments. `backend` and `sources` are without effect: they are those of all backends.
///
/// CLI Example:
///
///     salt-run fileserver.envs
#[function]
pub fn envs(
    context: &RunnerContext,
    /// Names of backends, as a list or with commas; all by default.
    #[default]
    backend: Value,
    /// Without effect.
    #[default(false)]
    sources: bool,
) -> CallResult {
    _ = (backend, sources);
    Ok(context.storage().files.envs().into())
}

/// Fetch the repositories of gitfs, and the files of custom file server backends.
///
/// CLI Example:
///
///     salt-run fileserver.update
#[function]
pub fn update(
    context: &RunnerContext,
    /// Names of backends, as a list or with commas; all by default.
    #[default]
    backend: Value,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let files = &context.storage().files;
    let is_served = |name: &str| {
        let name = name.trim_start_matches('-');
        name.is_empty() || BACKENDS.contains(&name) || files.mirrors().any(|mirror| mirror.name() == name)
    };
    let unknown = listed(&backend).into_iter().find(|name| !is_served(name));
    if let Some(name) = unknown.filter(|_| !context.master.config.salt_exit_status) {
        return Err(CallError::execution(format!(
            "the file server has no backend '{name}': expected roots, gitfs, minionfs or a module of yours in \
             fileserver_backend"
        )));
    }
    if names_git(&backend) {
        context.storage().files.update();
    }
    for mirror in context.storage().files.mirrors().filter(|mirror| names(&backend, &[mirror.name()])) {
        files::update(&context.calls.custom, mirror).map_err(CallError::execution)?;
    }
    Ok(true.into())
}

/// Return the files of an environment. `backend` is without effect: they are those of all backends.
///
/// CLI Example:
///
///     salt-run fileserver.file_list saltenv=prod
#[function]
pub fn file_list(
    context: &RunnerContext,
    /// Environment of the file server.
    #[default("base".to_owned())]
    saltenv: String,
    /// Names of backends, as a list or with commas; all by default.
    #[default]
    backend: Value,
) -> CallResult {
    _ = backend;
    Ok(context.storage().files.file_list(&saltenv, "").into())
}

/// Return the directories of an environment. `backend` is without effect: they are those of all backends.
///
/// CLI Example:
///
///     salt-run fileserver.dir_list saltenv=prod
#[function]
pub fn dir_list(
    context: &RunnerContext,
    /// Environment of the file server.
    #[default("base".to_owned())]
    saltenv: String,
    /// Names of backends, as a list or with commas; all by default.
    #[default]
    backend: Value,
) -> CallResult {
    _ = backend;
    Ok(context.storage().files.dir_list(&saltenv, "").into())
}

/// Return the empty directories of an environment. `backend` is without effect: they are those of all backends.
///
/// CLI Example:
///
///     salt-run fileserver.empty_dir_list saltenv=prod
#[function]
pub fn empty_dir_list(
    context: &RunnerContext,
    /// Environment of the file server.
    #[default("base".to_owned())]
    saltenv: String,
    /// Names of backends, as a list or with commas; all by default.
    #[default]
    backend: Value,
) -> CallResult {
    _ = backend;
    Ok(context.storage().files.empty_dirs(&saltenv, "").into())
}

/// Return the symbolic links of an environment and their targets. `backend` is without effect, as for `file_list`.
///
/// CLI Example:
///
///     salt-run fileserver.symlink_list saltenv=prod
#[function]
pub fn symlink_list(
    context: &RunnerContext,
    /// Environment of the file server.
    #[default("base".to_owned())]
    saltenv: String,
    /// Names of backends, as a list or with commas; all by default.
    #[default]
    backend: Value,
) -> CallResult {
    _ = backend;
    let links = context.storage().files.symlink_list(&saltenv, "");
    Ok(links.into_iter().map(|(link, target)| (link.into(), target.into())).collect::<Map>().into())
}

/// Remove the cached repositories of gitfs. The next update clones them again.
///
/// CLI Example:
///
///     salt-run fileserver.clear_cache
#[function]
pub fn clear_cache(
    context: &RunnerContext,
    /// Names of backends, as a list or with commas; all by default.
    #[default]
    backend: Value,
) -> CallResult {
    if !names_git(&backend) || !context.storage().files.has_git() {
        return Ok("No cache was cleared".into());
    }
    context.storage().files.clear_cache().map_err(CallError::execution)?;
    Ok(map! {"cleared" => brine_value::list!["The gitfs fileserver cache was successfully cleared"]}.into())
}

/// Return an empty result: lists of files are not cached. `saltenv` and `backend` are without effect.
///
/// CLI Example:
///
///     salt-run fileserver.clear_file_list_cache
#[function]
pub fn clear_file_list_cache(
    _context: &RunnerContext,
    /// Environment of the file server.
    #[default]
    saltenv: Value,
    /// Names of backends, as a list or with commas; all by default.
    #[default]
    backend: Value,
) -> CallResult {
    _ = (saltenv, backend);
    Ok(Value::map())
}

/// Return that there were no locks: fetches of repositories exclude each other within the master, without lock files
/// that could be left behind. `backend` and `remote` are without effect.
///
/// CLI Example:
///
///     salt-run fileserver.clear_lock
#[function]
pub fn clear_lock(
    _context: &RunnerContext,
    /// Names of backends, as a list or with commas; all by default.
    #[default]
    backend: Value,
    /// Text in the URL of the remote; all by default.
    #[default]
    remote: Value,
) -> CallResult {
    _ = (backend, remote);
    Ok("No locks were removed".into())
}

/// Return that no locks were set: fetches of repositories exclude each other within the master. To stop fetching a
/// repository, remove it from `gitfs_remotes`. `backend` and `remote` are without effect.
///
/// CLI Example:
///
///     salt-run fileserver.lock
#[function]
pub fn lock(
    _context: &RunnerContext,
    /// Names of backends, as a list or with commas; all by default.
    #[default]
    backend: Value,
    /// Text in the URL of the remote; all by default.
    #[default]
    remote: Value,
) -> CallResult {
    _ = (backend, remote);
    Ok("No locks were set".into())
}

/// Whether a list of backends includes gitfs. An empty list means all backends.
fn names_git(backends: &Value) -> bool {
    names(backends, &["git", "gitfs"])
}

/// Returns the names in an argument with a list of backends.
fn listed(backends: &Value) -> Vec<String> {
    match backends {
        Value::Str(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        other => Vec::from_value(other).unwrap_or_default(),
    }
}

/// Whether an argument with a list of backends contains one of these names. An empty list means all backends.
fn names(backends: &Value, aliases: &[&str]) -> bool {
    let names = listed(backends);
    names.is_empty() || names.iter().any(|name| aliases.contains(&name.as_str()))
}
