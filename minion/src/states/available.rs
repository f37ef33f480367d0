//! Which modules of states this host can have: those of `cron` need `crontab`.
//!
//! It is looked up for each state, because an earlier one may have installed what was missing.

use crate::context::Context;
use crate::modules::programs::which;

/// What a module's states call, and what is said where that is missing.
static PROGRAMS: &[(&str, &str, &str)] = &[
    ("cron", "crontab", "cron module could not be loaded"),
    ("debconf", "debconf-get-selections", "debconf module could not be loaded"),
    ("git", "git", "git module could not be loaded"),
];

/// Why this host has no states of a module, if so.
pub fn missing(context: &Context, module: &str) -> Option<&'static str> {
    if module == "debconf" && context.os_family() != "Debian" {
        return Some("debconf state only runs on Debian systems");
    }
    let (_, program, reason) = PROGRAMS.iter().find(|(name, ..)| *name == module)?;
    which(program).is_none().then_some(reason)
}
