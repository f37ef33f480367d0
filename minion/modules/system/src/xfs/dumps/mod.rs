//! `xfs`: dumps of file systems, and their inventory.

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_host::process::working_directory;
use brine_host::programs::{argument, is_on_another_host};
use brine_system::user_files;

use super::{parse, run};

/// Dump the file system on a device into a file or onto a tape, and return a summary.
///
/// CLI Example:
///
///     salt '*' xfs.dump /dev/sda1 /detination/on/the/client
///     salt '*' xfs.dump /dev/sda1 /detination/on/the/client label='Company accountancy'
#[function]
pub fn dump(
    context: &Context,
    /// Path of the device.
    device: String,
    /// Path of the dump.
    destination: String,
    /// 0 for a full dump, up to 9 for an incremental one.
    #[default(0)]
    level: u32,
    /// The label of the dump; default: one with the device and the time.
    label: Option<String>,
    /// Whether the medium is not erased before.
    #[default(false)]
    noerase: bool,
) -> CallResult {
    if context.minion.programs.find("xfsdump").is_none() {
        return Err(CallError::Execution("Utility \"xfsdump\" has to be installed or missing.".into()));
    }
    let label = label.filter(|label| !label.is_empty()).unwrap_or_else(|| {
        let now = brine_clock::now();
        format!("XFS dump for \"{device}\" of {}", now.strftime("%Y.%m.%d, %H:%M"))
    });
    let (level, destination, device) = (level.to_string(), argument(&destination)?, argument(&device)?);
    // On another host, the path is not one of this host.
    let path = working_directory(None, None).join(&destination);
    if !is_on_another_host(&destination) && !user_files::claim(&path).map_err(CallError::execution)? {
        return Err(CallError::Execution(format!(
            "{destination} cannot be used: other users can write its directory, and xfsdump follows their links; choose a \
             directory that only root can write"
        )));
    }
    let mut words = vec!["xfsdump", "-F"];
    words.extend((!noerase).then_some("-E"));
    words.extend(["-L", &label, "-l", &level, "-f", &destination, &device]);
    Ok(parse::summary(&run(context, &words)?.stdout).into())
}

/// Return the inventory of dumps.
///
/// CLI Example:
///
///     salt '*' xfs.inventory
#[function]
pub fn inventory(context: &Context) -> CallResult {
    Ok(parse::inventory(&run(context, &["xfsrestore", "-I"])?.stdout).into())
}

/// Remove a dump from the inventory, and return its former entry.
///
/// CLI Example:
///
///     salt '*' xfs.prune_dump b74a3586-e52e-4a4a-8775-c3334fa8ea2c
#[function]
pub fn prune_dump(
    context: &Context,
    /// Id of the session of the dump.
    sessionid: String,
) -> CallResult {
    let output = run(context, &["xfsinvutil", "-s", &argument(&sessionid)?, "-F"])?;
    let pruned = parse::pruned(&output.stdout);
    if pruned.get("uuid").and_then(|uuid| uuid.as_str()) != Some(&sessionid) {
        return Err(CallError::Execution(format!("Session UUID \"{sessionid}\" was not found.")));
    }
    Ok(pruned.into())
}

#[cfg(test)]
mod tests;
