//! The run of a new program with `--version`, before anything depends on it: as the user `nobody`, without privileges to
//! gain, network and environment, for a bounded time. It finds missing libraries, too.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brine_system::files::FileError;
use brine_system::processes;
use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::unistd::{Gid, Uid, geteuid, setgid, setgroups, setuid};

use crate::files::RUNNING;
use crate::{NAME, UpgradeError};

/// The limit of a run.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The time for which a program is not executed because a process that is just being spawned holds it open.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The ID of `nobody` and `nogroup`.
const NOBODY: u32 = 65534;

/// Returns the version of a program.
///
/// # Errors
/// It does not run, or is not Brine.
pub fn version_of(path: &Path) -> Result<String, UpgradeError> {
    let mut command = Command::new(RUNNING);
    command.arg0(NAME).arg("probe").arg(path).env_clear().current_dir("/").stdin(Stdio::null());
    let output = processes::output(&mut command, TIMEOUT).map_err(UpgradeError::at("running the new program"))?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let version = stdout.trim().strip_prefix("brine ").filter(|_| output.status.success());
    let is_version = |text: &&str| {
        text.len() <= 64
            && text.starts_with(|first: char| first.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte))
    };
    version.filter(is_version).map(str::to_owned).ok_or_else(|| {
        let said: String = stderr.lines().chain(stdout.lines()).next().unwrap_or_default().chars().take(200).collect();
        UpgradeError::Refused(format!(
            "the new program does not work: with --version it printed no version of brine ({}): {said}",
            output.status
        ))
    })
}

/// Gives privileges up and executes the program.
pub(crate) fn run(args: &[OsString]) -> Result<(), UpgradeError> {
    let [path] = args else { return Err(UpgradeError::Refused("expected a path".into())) };
    let path = PathBuf::from(path);
    let file = File::open(&path).map_err(FileError::at("open", &path))?;
    // Duplicated without close-on-exec: the user may not be able to reach the path.
    let file: OwnedFd = file.into();
    let open = nix::unistd::dup(&file).map_err(|error| UpgradeError::at("duplicating a descriptor")(error.into()))?;
    let failed = |action: &'static str| move |error: Errno| UpgradeError::at(action)(error.into());
    if geteuid().is_root() {
        // Containers may not allow it.
        _ = nix::sched::unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC);
        setgroups(&[]).map_err(failed("dropping groups"))?;
        setgid(Gid::from_raw(NOBODY)).map_err(failed("changing the group"))?;
        setuid(Uid::from_raw(NOBODY)).map_err(failed("changing the user"))?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(failed("setting no_new_privs"))?;
    let start = Instant::now();
    loop {
        let program = format!("/proc/self/fd/{}", open.as_raw_fd());
        let error = Command::new(program).arg0("brine").arg("--version").exec();
        if error.raw_os_error() != Some(Errno::ETXTBSY as i32) || start.elapsed() > BUSY_TIMEOUT {
            return Err(UpgradeError::at("executing the new program")(error));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
