//! `cmd.run_chroot`: commands in another root directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{CallError, CallResult, function};
use brine_host::programs::argument;
use brine_text::shell::quote;
use brine_value::Value;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{CommandArgs, CommandLine, finish, result_of_all};

/// The file systems that are mounted in the root directory, with their types.
const MOUNTS: [(&str, &str); 3] = [("dev", "devtmpfs"), ("proc", "proc"), ("sys", "sysfs")];
/// The number of rounds of SIGTERM, and then of SIGKILL.
const ATTEMPTS: usize = 3;
/// The pause between two rounds.
const PAUSE: Duration = Duration::from_millis(100);

/// Run a command in another root directory, with `/dev`, `/proc` and `/sys` mounted, and return its pid, retcode,
/// stdout and stderr. Processes that it leaves behind are ended.
///
/// `binds` is a list of directories that are mounted there, too. `runas` and `group` name accounts of that directory.
///
/// CLI Example:
///
///     salt '*' cmd.run_chroot /var/lib/lxc/container_name/rootfs 'sh /tmp/bootstrap.sh'
#[function]
pub fn run_chroot(
    context: &Context,
    /// Directory that becomes the root directory of the command.
    root: String,
    /// Command to run.
    cmd: CommandLine,
    #[args] args: CommandArgs,
) -> CallResult {
    let directory = Path::new(&root);
    let binds = match args.kwargs.get("binds") {
        Some(Value::List(binds)) => binds.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    let words = words(&root, &cmd.line, args.user().as_deref(), args.group.as_deref())?;
    let line = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let mut args = args;
    args.kwargs.shift_remove("user");
    let args = CommandArgs { runas: None, group: None, python_shell: false.into(), ..args };
    // If the directory is missing, `chroot` reports it.
    let mounted = if directory.is_dir() { Mounted::all(context, directory, &binds)? } else { Mounted(Vec::new()) };
    let output = args.program(context, &line).and_then(|program| finish(context, &program, &args));
    end_processes(directory);
    mounted.unmount(context);
    Ok(result_of_all(output?).into())
}

/// Returns the program that runs a command in a root directory.
fn words(root: &str, command: &str, user: Option<&str>, group: Option<&str>) -> Result<Vec<String>, CallError> {
    let has_bash = Path::new(root).join("bin/bash").is_file();
    let mut words = vec!["chroot".to_owned()];
    if let Some(user) = user {
        words.push(format!("--userspec={user}:{}", group.unwrap_or_default()));
    }
    let shell = if has_bash { "/bin/bash" } else { "/bin/sh" };
    words.extend([argument(root)?, shell.to_owned(), "-c".to_owned(), command.to_owned()]);
    Ok(words)
}

/// The file systems mounted for a command. Those that were mounted before stay mounted.
struct Mounted(Vec<PathBuf>);

impl Mounted {
    fn all(context: &Context, root: &Path, binds: &[String]) -> Result<Self, CallError> {
        let mut mounted = Mounted(Vec::new());
        let mut mounts: Vec<(PathBuf, Vec<String>)> =
            MOUNTS.iter().map(|(name, kind)| (root.join(name), ["-t", kind, kind].map(str::to_owned).into())).collect();
        for bind in binds {
            let path = root.join(argument(bind)?.trim_start_matches('/'));
            mounts.push((path, vec!["--bind".to_owned(), bind.clone()]));
        }
        for (path, how) in mounts {
            let mut words = vec!["mount".to_owned()];
            words.extend(how);
            words.push(argument(&path.to_string_lossy())?);
            let output = run(context, &words, &[])?;
            if output.retcode == 0 {
                mounted.0.push(path);
            } else {
                // Not an error: it may be mounted already, or not be needed.
                tracing::warn!(jid = context.job.jid, path = %path.display(), "mounting failed: {}", output.stderr);
            }
        }
        Ok(mounted)
    }

    fn unmount(self, context: &Context) {
        for path in self.0.iter().rev() {
            let output = run(context, &["umount".to_owned(), path.to_string_lossy().into_owned()], &[]);
            let error = match output {
                Ok(output) if output.retcode == 0 => continue,
                Ok(output) => output.stderr,
                Err(error) => error.to_string(),
            };
            tracing::error!(jid = context.job.jid, path = %path.display(), "unmounting failed: {error}");
        }
    }
}

/// Terminates the processes whose root is this directory, and kills those that remain.
fn end_processes(root: &Path) {
    let Ok(root) = root.canonicalize() else { return };
    for attempt in 0..2 * ATTEMPTS {
        let pids = processes_in(&root);
        if pids.is_empty() {
            return;
        }
        let signal = if attempt < ATTEMPTS { Signal::SIGTERM } else { Signal::SIGKILL };
        for pid in pids {
            _ = kill(pid, signal);
        }
        std::thread::sleep(PAUSE);
    }
    tracing::error!(root = %root.display(), "terminating the processes in the directory failed");
}

fn processes_in(root: &Path) -> Vec<Pid> {
    // The root of the host is excluded: it is the root of every process.
    if root == Path::new("/") {
        return Vec::new();
    }
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_inside = |path: &Path| std::fs::read_link(path.join("root")).is_ok_and(|own| own == root);
    let inside = entries.filter(|entry| is_inside(&entry.path()));
    inside.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw)).collect()
}

#[cfg(test)]
mod tests;
