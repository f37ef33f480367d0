//! The environment of the programs that are run: that of this process, with the changes of `environ.setenv` over it.
//!
//! Changes are kept apart and given to each command: the environment of this process cannot change while others of its
//! threads may read it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use parking_lot::RwLock;

/// The variables that were set or removed (`None`) since this process started.
static CHANGED: LazyLock<RwLock<BTreeMap<String, Option<String>>>> = LazyLock::new(RwLock::default);

/// Returns the value of a variable.
pub fn variable(name: &str) -> Option<String> {
    CHANGED.read().get(name).cloned().unwrap_or_else(|| std::env::var(name).ok())
}

/// Returns all variables.
pub fn all() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let mut found: BTreeMap<String, String> =
        std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
    for (name, value) in CHANGED.read().iter() {
        match value {
            Some(value) => _ = found.insert(name.clone(), value.clone()),
            None => _ = found.remove(name),
        }
    }
    found
}

/// Sets a variable, or removes it.
pub fn set(name: &str, value: Option<&str>) {
    CHANGED.write().insert(name.to_owned(), value.map(str::to_owned));
}

/// Returns the changes that commands get over the environment of this process: `None` for a removed variable.
pub fn changed() -> BTreeMap<String, Option<String>> {
    CHANGED.read().clone()
}
