//! Lists, hashes and modes of the master's files.

use std::path::Path;

use brine_context::Context;
use brine_context::files::in_environment;
use brine_function::{CallError, CallResult, function};
use brine_value::{Value, map};

use super::{below, environment};
use crate::checksum::{digest, hash_kind};

/// Return the hash of a file of the file server or of this host, with its type. Returns an empty string if the file
/// server has no such file, and nothing if this host has none.
///
/// CLI Example:
///
///     salt '*' cp.hash_file salt://my/file
#[function]
pub fn hash_file(
    context: &Context,
    /// URL or path of the file, or of the directory.
    path: String,
    /// Environment of the file server.
    saltenv: Option<String>,
) -> CallResult {
    let own = brine_fileserver::hash_kind(&context.config().opts).name();
    let report = |hash: String| map! {"hash_type" => hash_kind(&hash).unwrap_or(own), "hsum" => hash}.into();
    if !path.starts_with("salt://") {
        let path = Path::new(&path);
        return if path.exists() { digest(path, own).map(report) } else { Ok(Value::map()) };
    }
    let saltenv = environment(context, saltenv);
    let (name, saltenv) = in_environment(&path, &saltenv);
    let hash = context.minion.files.hash(name, saltenv).map_err(CallError::execution)?;
    Ok(hash.map_or_else(|| "".into(), report))
}

/// Return the mode of a file of the file server or of this host in octal digits; with `octal=False` as an integer
/// that includes the file type. Returns nothing if there is no such file.
///
/// CLI Example:
///
///     salt '*' cp.stat_file salt://path/to/file
#[function]
pub fn stat_file(
    context: &Context,
    /// URL or path of the file, or of the directory.
    path: String,
    /// Environment of the file server.
    saltenv: Option<String>,
    /// Whether the mode is returned as an octal string.
    #[default(true)]
    octal: bool,
) -> CallResult {
    let saltenv = environment(context, saltenv);
    let mode = if path.starts_with("salt://") {
        let (name, saltenv) = in_environment(&path, &saltenv);
        context.minion.files.mode(name, saltenv).map_err(CallError::execution)?
    } else {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file).map(|status| status.mode() & 0o7777)
    };
    Ok(match mode {
        Some(mode) if octal => format!("{mode:04o}").into(),
        Some(mode) => i64::from(REGULAR | mode).into(),
        None => Value::Nil,
    })
}

/// Return the symbolic links of the file server with their targets, or those below `prefix`.
///
/// CLI Example:
///
///     salt '*' cp.list_master_symlinks
#[function]
pub fn list_master_symlinks(
    context: &Context,
    /// Environment of the file server.
    saltenv: Option<String>,
    /// Start of the paths that are listed.
    #[default]
    prefix: String,
) -> CallResult {
    let mut links = context.minion.files.links(&environment(context, saltenv)).map_err(CallError::execution)?;
    let prefix = prefix.trim_matches('/');
    links.retain(|path, _| path.as_str().is_some_and(|path| path.starts_with(prefix)));
    Ok(links.into())
}

/// Return the names of all SLS files.
///
/// CLI Example:
///
///     salt '*' cp.list_states
#[function]
pub fn list_states(
    context: &Context,
    /// Environment of the file server.
    saltenv: Option<String>,
) -> CallResult {
    let files = context.minion.files.list(&environment(context, saltenv)).map_err(CallError::execution)?;
    let name = |path: &String| {
        let path = path.strip_suffix(".sls")?;
        Some(path.strip_suffix("/init").unwrap_or(path).replace('/', "."))
    };
    let mut names: Vec<String> = files.iter().filter_map(name).collect();
    names.sort();
    Ok(names.into())
}

/// Return the files of the file server, or those whose path begins with `prefix`.
///
/// CLI Example:
///
///     salt '*' cp.list_master
#[function]
pub fn list_master(
    context: &Context,
    /// Environment of the file server.
    saltenv: Option<String>,
    /// Start of the paths that are listed.
    #[default]
    prefix: String,
) -> CallResult {
    let files = context.minion.files.list(&environment(context, saltenv)).map_err(CallError::execution)?;
    Ok(below(files, &prefix))
}

/// Return the directories of the file server, or those whose path begins with `prefix`.
///
/// CLI Example:
///
///     salt '*' cp.list_master_dirs
#[function]
pub fn list_master_dirs(
    context: &Context,
    /// Environment of the file server.
    saltenv: Option<String>,
    /// Start of the paths that are listed.
    #[default]
    prefix: String,
) -> CallResult {
    let directories = context.minion.files.directories(&environment(context, saltenv)).map_err(CallError::execution)?;
    Ok(below(directories, &prefix))
}

/// Return the environments of the file server.
///
/// CLI Example:
///
///     salt '*' cp.envs
#[function]
pub fn envs(context: &Context) -> CallResult {
    Ok(context.minion.files.environments().map_err(CallError::execution)?.into())
}

/// File type bits of a regular file's mode.
const REGULAR: u32 = 0o100_000;
