//! `backup`: what `brine backup` needs of a running master.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::map;
use parking_lot::Mutex;

use super::RunnerContext;

/// Runner functions of `backup`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("backup", [snapshot]);

/// Copies at the same time would share a file.
static RUNNING: Mutex<()> = Mutex::new(());

/// Write the store as it is now to the file `backup.redb` in `cachedir`, which only the master's user can read, and
/// return its path and its size in bytes. A copy of an earlier call is replaced. `brine backup` calls it, and removes
/// the copy.
///
/// CLI Example:
///
///     salt-run backup.snapshot
#[function]
pub fn snapshot(context: &RunnerContext) -> CallResult {
    let Some(_running) = RUNNING.try_lock() else {
        return Err(CallError::execution("another backup is being made: try again when it is done"));
    };
    let path = context.master.config.snapshot_path();
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(CallError::execution(format!("removing {} failed: {error}", path.display())));
        }
        _ => {}
    }
    context.master.bus.write_snapshot(&context.caller.thread, &path).map_err(CallError::execution)?;
    let bytes = std::fs::metadata(&path).map_or(0, |copy| copy.len());
    Ok(map! {"path" => path.display().to_string(), "bytes" => bytes}.into())
}
