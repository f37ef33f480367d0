//! `minion`: lists the minion keys of a master on this host; terminates and restarts this minion.

mod process;

use std::path::{Path, PathBuf};

use brine_context::{Context, Module};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::Map;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `minion`.
pub static FUNCTIONS: Functions<Context> = registry!("minion", [list, process::kill, process::restart]);

/// The directories of keys in the `pki_dir` of a master.
const DIRECTORIES: [&str; 4] = ["minions", "minions_pre", "minions_rejected", "minions_denied"];

/// Return the ids of the minion keys of the master on this host: accepted, pending, rejected and denied ones.
///
/// CLI Example:
///
///     salt 'master' minion.list
#[function]
pub fn list(context: &Context) -> CallResult {
    Ok(keys(&master_pki_dir(&context.config().pki_dir)).into())
}

/// Returns the `pki_dir` of the master on this host, derived from that of the minion.
fn master_pki_dir(pki_dir: &Path) -> PathBuf {
    pki_dir.to_string_lossy().replace("minion", "master").into()
}

fn keys(pki_dir: &Path) -> Map {
    let names = |directory: &str| -> Vec<String> {
        let entries = std::fs::read_dir(pki_dir.join(directory)).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.path().is_file());
        let mut names: Vec<String> = files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort_by_key(|name| name.to_lowercase());
        names
    };
    DIRECTORIES.iter().map(|directory| ((*directory).into(), names(directory).into())).collect()
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn keys_are_listed_by_their_state() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["minions/web2", "minions/Web1", "minions/.key_cache", "minions_pre/new"] {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let expected = map! {
            "minions" => list!["Web1", "web2"], "minions_pre" => list!["new"], "minions_rejected" => list![],
            "minions_denied" => list![],
        };
        assert_eq!(keys(directory.path()), expected);
        assert_eq!(master_pki_dir(Path::new("/etc/salt/pki/minion")), Path::new("/etc/salt/pki/master"));
    }
}
