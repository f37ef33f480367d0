//! The types of Salt's modules that Brine does not call. Files of these types have no effect, and a warning is logged.

use std::path::Path;

use crate::{Files, Library};

/// The module types without effect.
const UNUSED: &[&str] =
    &["clouds", "log_handlers", "proxy", "proxymodules", "queues", "resources", "roots", "thorium", "wrapper"];

/// Logs a warning if synced modules of this type have no effect.
pub fn warn_if_unused(kind: &str) {
    if UNUSED.contains(&kind) {
        tracing::warn!("modules in '_{kind}' have no effect: Brine does not call modules of this type");
    }
}

/// Logs a warning for each type without effect that has files in the configured directories.
pub fn warn_about_unused(module_dirs: &[String], synced: &Path) {
    for kind in UNUSED {
        if !Files::find(&Library::directories(kind, module_dirs, &[], synced)).is_empty() {
            warn_if_unused(kind);
        }
    }
}
