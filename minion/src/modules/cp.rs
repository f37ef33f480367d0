//! `cp`: files under `salt://`.

use brine_core::function::CallError;
use brine_core::{Value, functions, map};

use crate::context::Context;

functions! {
    module "cp", context Context;

    /// The content of a file, or false if there is none.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cp.get_file_str salt://my/file
    fn get_file_str(context, path: String, saltenv: Option<String> = None) {
        let (path, saltenv) = place(context, &path, saltenv);
        let content = match path.strip_prefix('/') {
            Some(_) => std::fs::read(&path).ok(),
            None => context.minion.files.read(&path, &saltenv).map_err(CallError::Execution)?,
        };
        Ok(content.map_or(Value::Bool(false), |content| String::from_utf8_lossy(&content).into_owned().into()))
    }

    /// The type and the text of a file's hash; nothing of a file that is not there.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cp.hash_file salt://my/file
    fn hash_file(context, path: String, saltenv: Option<String> = None) {
        let (path, saltenv) = place(context, &path, saltenv);
        let hash = context.minion.files.hash(&path, &saltenv).map_err(CallError::Execution)?;
        Ok(hash.map_or_else(Value::map, |hash| map! {"hash_type" => "sha256", "hsum" => hash}.into()))
    }

    /// The names of all SLS files.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cp.list_states
    fn list_states(context, saltenv: Option<String> = None) {
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
    fn list_master(context, saltenv: Option<String> = None, prefix: String = String::new()) {
        let files = context.minion.files.list(&environment(context, saltenv)).map_err(CallError::Execution)?;
        Ok(below(files, &prefix))
    }

    /// All folders, or those whose path begins with `prefix`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cp.list_master_dirs
    fn list_master_dirs(context, saltenv: Option<String> = None, prefix: String = String::new()) {
        let folders = context.minion.files.folders(&environment(context, saltenv)).map_err(CallError::Execution)?;
        Ok(below(folders, &prefix))
    }

    /// All environments.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cp.envs
    fn envs(context) {
        Ok(context.minion.files.environments().map_err(CallError::Execution)?.into())
    }
}

fn environment(context: &Context, saltenv: Option<String>) -> String {
    saltenv.or_else(|| context.config().saltenv.clone()).unwrap_or_else(|| "base".to_owned())
}

/// The path without `salt://`, and the environment, which may be written behind the path: `?saltenv=dev`.
fn place(context: &Context, path: &str, saltenv: Option<String>) -> (String, String) {
    let path = path.strip_prefix("salt://").unwrap_or(path);
    match path.split_once("?saltenv=") {
        Some((path, saltenv)) => (path.to_owned(), saltenv.to_owned()),
        None => (path.to_owned(), environment(context, saltenv)),
    }
}

fn below(paths: Vec<String>, prefix: &str) -> Value {
    let prefix = prefix.trim_start_matches('/');
    paths.into_iter().filter(|path| path.starts_with(prefix)).collect()
}

#[cfg(test)]
mod tests {
    use brine_core::function::Args;
    use brine_core::{Map, list};

    use super::*;
    use crate::testing;

    #[test]
    fn files_are_listed_and_read() {
        let context = testing::context(&[("web/init.sls", "{}"), ("web/a.txt", "hello"), ("db.sls", "{}")]);
        for (fun, args, expected) in [
            ("cp.list_states", &[][..], list!["db", "web"]),
            ("cp.list_master", &["base", "web/a"], list!["web/a.txt"]),
            ("cp.get_file_str", &["salt://web/a.txt"], "hello".into()),
            ("cp.get_file_str", &["salt://web/a.txt?saltenv=base"], "hello".into()),
            ("cp.get_file_str", &["salt://no"], Value::Bool(false)),
            // The files of a test have their length in the place of a hash.
            ("cp.hash_file", &["salt://web/a.txt"], map! {"hash_type" => "sha256", "hsum" => "5"}.into()),
            ("cp.hash_file", &["salt://no"], Value::map()),
        ] {
            let positional = args.iter().map(|arg| Value::from(*arg)).collect();
            let found = context.call(fun, Args { positional, keyword: Map::new() }).map_err(|error| error.to_string());
            assert_eq!(found, Ok(expected), "{fun} {args:?}");
        }
    }
}
