//! What the master has: lists, hashes and states of its files.

use std::path::Path;

use brine_context::Context;
use brine_context::files::in_environment;
use brine_function::{CallError, CallResult, function};
use brine_value::{Value, map};

use super::{below, environment};
use crate::file;

/// The type and the text of the hash of a file, of the file server or of this host. Of one that the file server does
/// not have, an empty text; of one that this host does not have, nothing.
///
/// CLI Example:
///
///     salt '*' cp.hash_file salt://my/file
#[function]
pub fn hash_file(context: &Context, path: String, #[default] saltenv: Option<String>) -> CallResult {
    let own = brine_fileserver::hash_kind(&context.config().opts).name();
    let told = |hash: String| map! {"hash_type" => file::hash_kind(&hash).unwrap_or(own), "hsum" => hash}.into();
    if !path.starts_with("salt://") {
        let path = Path::new(&path);
        return if path.exists() { file::digest(path, own).map(told) } else { Ok(Value::map()) };
    }
    let saltenv = environment(context, saltenv);
    let (name, saltenv) = in_environment(&path, &saltenv);
    let hash = context.minion.files.hash(name, saltenv).map_err(CallError::Execution)?;
    Ok(hash.map_or_else(|| "".into(), told))
}

/// The mode of a file, of the file server or of this host, in octal digits; with `octal=False` as a number, with the
/// type of the file in it. Nothing of a file that is not there.
///
/// CLI Example:
///
///     salt '*' cp.stat_file salt://path/to/file
#[function]
pub fn stat_file(
    context: &Context,
    path: String,
    #[default] saltenv: Option<String>,
    #[default(true)] octal: bool,
) -> CallResult {
    let saltenv = environment(context, saltenv);
    let mode = if path.starts_with("salt://") {
        let (name, saltenv) = in_environment(&path, &saltenv);
        context.minion.files.mode(name, saltenv).map_err(CallError::Execution)?
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

/// The links of the file server and what they lead to, or those whose path begins with `prefix`.
///
/// CLI Example:
///
///     salt '*' cp.list_master_symlinks
#[function]
pub fn list_master_symlinks(
    context: &Context,
    #[default] saltenv: Option<String>,
    #[default] prefix: String,
) -> CallResult {
    let mut links = context.minion.files.links(&environment(context, saltenv)).map_err(CallError::Execution)?;
    let prefix = prefix.trim_matches('/');
    links.retain(|path, _| path.as_str().is_some_and(|path| path.starts_with(prefix)));
    Ok(links.into())
}

/// The names of all SLS files.
///
/// CLI Example:
///
///     salt '*' cp.list_states
#[function]
pub fn list_states(context: &Context, #[default] saltenv: Option<String>) -> CallResult {
    let files = context.minion.files.list(&environment(context, saltenv)).map_err(CallError::Execution)?;
    let name = |path: &String| {
        let path = path.strip_suffix(".sls")?;
        Some(path.strip_suffix("/init").unwrap_or(path).replace('/', "."))
    };
    let mut names: Vec<String> = files.iter().filter_map(name).collect();
    names.sort();
    Ok(names.into())
}

/// All files, or those whose path begins with `prefix`.
///
/// CLI Example:
///
///     salt '*' cp.list_master
#[function]
pub fn list_master(context: &Context, #[default] saltenv: Option<String>, #[default] prefix: String) -> CallResult {
    let files = context.minion.files.list(&environment(context, saltenv)).map_err(CallError::Execution)?;
    Ok(below(files, &prefix))
}

/// All folders, or those whose path begins with `prefix`.
///
/// CLI Example:
///
///     salt '*' cp.list_master_dirs
#[function]
pub fn list_master_dirs(
    context: &Context,
    #[default] saltenv: Option<String>,
    #[default] prefix: String,
) -> CallResult {
    let folders = context.minion.files.folders(&environment(context, saltenv)).map_err(CallError::Execution)?;
    Ok(below(folders, &prefix))
}

/// All environments.
///
/// CLI Example:
///
///     salt '*' cp.envs
#[function]
pub fn envs(context: &Context) -> CallResult {
    Ok(context.minion.files.environments().map_err(CallError::Execution)?.into())
}

/// What the mode of a file says of its type, where it is a regular one.
const REGULAR: u32 = 0o100_000;
