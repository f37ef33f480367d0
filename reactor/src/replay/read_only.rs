//! The functions that templates may call in a replay: those that only read. Others would act a thousand times.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_jinja::{Behaviour, Files, FilesError, Functions, Host, Role};
use brine_value::Value;
use parking_lot::Mutex;

use super::is_below;

/// The maximum number of refused functions that are named.
const NAMED: usize = 50;

/// Functions that only read data which the master has; none of them contacts a minion or another host.
const READING: &[&str] = &[
    "cache.fetch",
    "cache.grains",
    "cache.list",
    "cache.mine",
    "cache.pillar",
    "config.get",
    "config.option",
    "defaults.deepcopy",
    "defaults.get",
    "grains.fetch",
    "grains.get",
    "grains.has_value",
    "grains.item",
    "grains.items",
    "key.list",
    "key.list_all",
    "key.name_match",
    "match.filter_by",
    "mine.get",
    "pillar.fetch",
    "pillar.get",
    "pillar.item",
    "reactor.list",
    "reactor.registers",
    "reactor.rules",
    "reactor.timers",
    "slsutil.merge",
    "slsutil.merge_all",
    "slsutil.update",
];

/// The functions that a replay has refused.
#[derive(Default)]
pub(super) struct Refused(Mutex<BTreeSet<String>>);

impl Refused {
    /// Returns their names.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock()).into_iter().collect()
    }
}

/// The functions of a host that only read.
pub(super) struct ReadOnly {
    pub host: Host,
    pub refused: Arc<Refused>,
}

impl ReadOnly {
    fn may_call(function: &str) -> bool {
        let plain = function.strip_prefix("runner.").or(function.strip_prefix("wheel.")).unwrap_or(function);
        READING.contains(&plain)
    }
}

impl Functions for ReadOnly {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        if Self::may_call(function) {
            return self.host.call(function, args);
        }
        let mut refused = self.refused.0.lock();
        if refused.len() < NAMED {
            refused.insert(function.to_owned());
        }
        Err(CallError::execution(format!("a replay does not call '{function}', which may change something")))
    }

    fn has(&self, function: &str) -> bool {
        self.host.has(function)
    }

    fn has_module(&self, module: &str) -> bool {
        self.host.has_module(module)
    }

    fn behaviour(&self, function: &str) -> Behaviour {
        self.host.behaviour(function)
    }

    fn name_of(&self, role: Role) -> Option<&'static str> {
        self.host.name_of(role)
    }
}

/// The files of a tree, before those of the file server.
pub(super) struct TreeFiles {
    pub tree: Option<PathBuf>,
    pub host: Host,
}

impl Files for TreeFiles {
    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, FilesError> {
        if let Some(tree) = &self.tree
            && is_below(Path::new(path))
        {
            let path = tree.join(path.trim_start_matches('/'));
            match std::fs::read_to_string(&path) {
                Ok(text) => return Ok(Some(text)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(FilesError::DiskAt { path, source }),
            }
        }
        self.host.template(path, saltenv)
    }
}
