//! `brine.doctor`: what `brine doctor` says of a minion.

use brine_context::Context;
use brine_doctor::finding::{sorted, to_values, trimmed};
use brine_doctor::{Installation, Role};
use brine_function::{CallResult, function};

/// Return what is wrong with this minion, causes first, each with the command that mends it; an empty list if nothing is.
///
/// It examines the configuration, directories, keys, disks, limits, the unit, and the names and ports of the masters.
/// `brine doctor` on the host does the same, and mends some of it.
///
/// CLI Example:
///
///     salt '*' brine.doctor
#[function]
pub fn doctor(context: &Context) -> CallResult {
    let config = context.config();
    let installation = Installation::minion(config, &[]);
    let mut findings = brine_doctor::examine(&installation, true);
    let file = installation.config_dir.join("minion");
    findings.extend(brine_doctor::of_options(Role::Minion, file, brine_doctor::declared::check(config)));
    Ok(to_values(&trimmed(sorted(findings))))
}
