//! The types of Salt's modules that Brine does not call: a file of one has no effect, and the log says so.

use std::path::Path;

use crate::{Files, Library};

/// These types.
const UNUSED: &[&str] =
    &["clouds", "log_handlers", "proxy", "proxymodules", "queues", "resources", "roots", "thorium", "wrapper"];

/// Logs that the synced modules of a type have no effect, if it is one of these.
pub fn warn_if_unused(kind: &str) {
    if UNUSED.contains(&kind) {
        tracing::warn!("modules in '_{kind}' have no effect: Brine does not call modules of this type");
    }
}

/// Logs for each of these types that its files in the directories of the configuration have no effect.
pub fn warn_about_unused(module_dirs: &[String], synced: &Path) {
    for kind in UNUSED {
        if !Files::find(&Library::directories(kind, module_dirs, &[], synced)).is_empty() {
            warn_if_unused(kind);
        }
    }
}
