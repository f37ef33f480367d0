//! `fileserver`: what the master's file server serves.

use brine_function::{CallError, functions};
use brine_value::{FromValue, Map, Value, map};

use super::RunnerContext;

functions! {
    module "fileserver", context RunnerContext;

    /// The environments.
    ///
    /// CLI Example:
    ///
    ///     salt-run fileserver.envs
    fn envs(context, backend: Value = Value::Nil, sources: bool = false) {
        _ = (backend, sources);
        Ok(context.disk().files.envs().into())
    }

    /// Fetches the repositories of gitfs.
    ///
    /// CLI Example:
    ///
    ///     salt-run fileserver.update
    fn update(context, backend: Value = Value::Nil, **_kwargs) {
        if names_git(&backend) {
            context.disk().files.update();
        }
        Ok(true.into())
    }

    /// The files of an environment.
    ///
    /// CLI Example:
    ///
    ///     salt-run fileserver.file_list saltenv=prod
    fn file_list(context, saltenv: String = "base".to_owned(), backend: Value = Value::Nil) {
        _ = backend;
        Ok(context.disk().files.file_list(&saltenv, "").into())
    }

    /// The folders of an environment.
    ///
    /// CLI Example:
    ///
    ///     salt-run fileserver.dir_list saltenv=prod
    fn dir_list(context, saltenv: String = "base".to_owned(), backend: Value = Value::Nil) {
        _ = backend;
        Ok(context.disk().files.dir_list(&saltenv, "").into())
    }

    /// The folders of an environment that have nothing in them.
    ///
    /// CLI Example:
    ///
    ///     salt-run fileserver.empty_dir_list saltenv=prod
    fn empty_dir_list(context, saltenv: String = "base".to_owned(), backend: Value = Value::Nil) {
        _ = backend;
        Ok(context.disk().files.empty_dirs(&saltenv, "").into())
    }

    /// The links of an environment, and where they lead.
    ///
    /// CLI Example:
    ///
    ///     salt-run fileserver.symlink_list saltenv=prod
    fn symlink_list(context, saltenv: String = "base".to_owned(), backend: Value = Value::Nil) {
        _ = backend;
        let links = context.disk().files.symlink_list(&saltenv, "");
        Ok(links.into_iter().map(|(link, target)| (link.into(), target.into())).collect::<Map>().into())
    }

    /// Removes what is kept of the repositories of gitfs. They are fetched anew by the next update.
    ///
    /// CLI Example:
    ///
    ///     salt-run fileserver.clear_cache
    fn clear_cache(context, backend: Value = Value::Nil) {
        if !names_git(&backend) || !context.disk().files.has_git() {
            return Ok("No cache was cleared".into());
        }
        context.disk().files.clear_cache().map_err(CallError::execution)?;
        Ok(map! {"cleared" => brine_value::list!["The gitfs fileserver cache was successfully cleared"]}.into())
    }
}

/// Whether these backends, or all if there are none, are with gitfs.
fn names_git(backends: &Value) -> bool {
    let names: Vec<String> = match backends {
        Value::Str(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        other => Vec::from_value(other).unwrap_or_default(),
    };
    names.is_empty() || names.iter().any(|name| name == "git" || name == "gitfs")
}
