//! `chroot`: directories that programs run in as their root. Calls of functions inside of one need Salt there, and are
//! left out; `cmd.run_chroot` runs commands.

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use brine_context::{Context, Module};
use brine_function::{CallResult, Functions, function, registry};
use brine_system::user_files;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `chroot`.
pub static FUNCTIONS: Functions<Context> = registry!("chroot", [exist, create, in_chroot]);

/// The directories of a chroot environment, with their modes.
const DIRECTORIES: [(&str, u32); 3] = [("dev", 0o755), ("proc", 0o555), ("sys", 0o555)];

/// Return whether a directory is a chroot environment: it has the directories `dev`, `proc` and `sys`.
///
/// CLI Example:
///
///     salt '*' chroot.exist /chroot
#[function]
pub fn exist(
    _context: &Context,
    /// Path of the directory.
    root: String,
) -> CallResult {
    Ok(is_environment(Path::new(&root)).into())
}

/// Create the directories of a chroot environment, without programs, and return whether they are there.
///
/// CLI Example:
///
///     salt '*' chroot.create /chroot
#[function]
pub fn create(
    context: &Context,
    /// Path of the directory.
    root: String,
) -> CallResult {
    let path = Path::new(&root);
    if let Err(error) = create_environment(path) {
        tracing::error!(jid = context.job.jid, root, "creating the directories of a chroot failed: {error}");
    }
    Ok(is_environment(path).into())
}

/// Return whether the minion runs in a chroot environment.
///
/// CLI Example:
///
///     salt '*' chroot.in_chroot
#[function]
pub fn in_chroot(_context: &Context) -> CallResult {
    Ok(has_other_mounts(Path::new("/proc")).into())
}

fn is_environment(root: &Path) -> bool {
    DIRECTORIES.iter().all(|(name, _)| root.join(name).is_dir())
}

fn create_environment(root: &Path) -> io::Result<()> {
    user_files::create_dir_all(root)?;
    for (name, mode) in DIRECTORIES {
        match user_files::create_dir(root.join(name), mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result?,
        }
    }
    Ok(())
}

/// Whether this process has other mounts than the first one. Without the permission to know, it has not.
fn has_other_mounts(proc: &Path) -> bool {
    let mounts = |process: &str| std::fs::read(proc.join(process).join("mountinfo"));
    mounts("1").and_then(|first| Ok(first != mounts("self")?)).unwrap_or(false)
}
