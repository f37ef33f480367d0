//! `selinux`: whether SELinux enforces its policy, now and at boot.

use std::io::Write;
use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_system::user_files;
use brine_value::Value;

/// Execution functions of `selinux`.
pub static FUNCTIONS: Functions<Context> = registry!("selinux", [selinux_fs_path, getenforce, getconfig, setenforce]);

const CONFIG: &str = "/etc/selinux/config";
const KEY: &str = "SELINUX=";

/// Return the mount point of the SELinux file system, or nothing.
///
/// CLI Example:
///
///     salt '*' selinux.selinux_fs_path
#[function]
pub fn selinux_fs_path(_context: &Context) -> CallResult {
    Ok(file_system(Path::new("/")).map_or(Value::Nil, Value::from))
}

/// Return the mode: Enforcing, Permissive or Disabled.
///
/// CLI Example:
///
///     salt '*' selinux.getenforce
#[function]
pub fn getenforce(_context: &Context) -> CallResult {
    Ok(current(Path::new("/")).into())
}

/// Return the mode at boot, or nothing.
///
/// CLI Example:
///
///     salt '*' selinux.getconfig
#[function]
pub fn getconfig(_context: &Context) -> CallResult {
    let text = files::read_if_exists(CONFIG).map_err(CallError::execution)?;
    Ok(text.and_then(|text| at_boot(&text)).map_or(Value::Nil, Value::from))
}

/// Set the mode, now and at boot, and return the current one. `disabled` takes effect at the next boot.
///
/// CLI Example:
///
///     salt '*' selinux.setenforce enforcing
#[function]
pub fn setenforce(
    _context: &Context,
    /// `Enforcing`, `Permissive` or `Disabled`.
    mode: String,
) -> CallResult {
    let desired = mode.to_lowercase();
    if !["enforcing", "permissive", "disabled"].contains(&desired.as_str()) {
        return Err(CallError::Execution(format!("Invalid mode {mode}")));
    }
    change(Path::new("/"), &desired)?;
    Ok(current(Path::new("/")).into())
}

fn file_system(root: &Path) -> Option<PathBuf> {
    ["sys/fs/selinux", "selinux"].iter().map(|path| root.join(path)).find(|path| path.join("enforce").is_file())
}

fn current(root: &Path) -> &'static str {
    let text = file_system(root).and_then(|path| std::fs::read_to_string(path.join("enforce")).ok());
    match text.as_deref().map(str::trim) {
        None => "Disabled",
        Some("0") => "Permissive",
        Some(_) => "Enforcing",
    }
}

/// Returns the capitalised mode in the text of the configuration, such as `Enforcing`.
fn at_boot(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(KEY))?.trim().to_lowercase();
    let mut letters = value.chars();
    Some(letters.next()?.to_uppercase().chain(letters).collect())
}

/// Sets the current mode and the mode at boot, below a root directory.
fn change(root: &Path, desired: &str) -> Result<(), CallError> {
    if let Some(path) = file_system(root) {
        let number = if desired == "enforcing" { "1" } else { "0" };
        let failed = |error| CallError::Execution(format!("Could not write SELinux enforce file: {error}"));
        user_files::open_in_place(path.join("enforce"))
            .and_then(|mut file| file.write_all(number.as_bytes()))
            .map_err(failed)?;
    }
    let path = root.join(CONFIG.trim_start_matches('/'));
    let failed = |error| CallError::Execution(format!("Could not read SELinux config file: {error}"));
    let text = files::read_to_string(&path).map_err(failed)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match lines.iter_mut().find(|line| line.trim().starts_with(KEY)) {
        Some(line) => *line = format!("{KEY}{desired}"),
        None => lines.push(format!("{KEY}{desired}")),
    }
    let failed = |error| CallError::Execution(format!("Could not write SELinux config file: {error}"));
    files::rewrite(&path, (lines.join("\n") + "\n").as_bytes(), 0o644).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_set_now_and_at_boot() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir_all(root.join("etc/selinux")).unwrap();
        let config = root.join("etc/selinux/config");
        std::fs::write(&config, "# SELINUX= can be\nSELINUX=disabled\nSELINUXTYPE=default\n").unwrap();
        assert_eq!(current(root), "Disabled");
        change(root, "permissive").unwrap();
        assert_eq!(
            std::fs::read_to_string(&config).unwrap(),
            "# SELINUX= can be\nSELINUX=permissive\nSELINUXTYPE=default\n"
        );
        std::fs::create_dir_all(root.join("sys/fs/selinux")).unwrap();
        std::fs::write(root.join("sys/fs/selinux/enforce"), "0").unwrap();
        assert_eq!(current(root), "Permissive");
        change(root, "enforcing").unwrap();
        assert_eq!(current(root), "Enforcing");
        assert_eq!(at_boot(&std::fs::read_to_string(&config).unwrap()).as_deref(), Some("Enforcing"));
        assert_eq!(at_boot("SELINUXTYPE=default\n"), None);
        std::fs::remove_file(config).unwrap();
        assert!(change(root, "disabled").unwrap_err().to_string().contains("Could not read SELinux config file"));
    }
}
