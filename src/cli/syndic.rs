//! `salt-syndic`: the daemon that connects the master on this host to masters above it.

use std::ffi::OsString;
use std::process::ExitCode;

use brine_check::Finding;
use brine_sandbox::Profile;
use brine_syndic::Settings;

use super::daemon::{self, DaemonCommand, DaemonPaths, Signals};
use super::privileges;
use super::runtime;

const NAME: &str = "salt-syndic";
pub const COMMAND: DaemonCommand = DaemonCommand {
    name: NAME,
    usage: "salt-syndic [options]",
    about: "Pass on jobs of the masters in `syndic_master` to the master on this host, and its returns and events to them",
    examples: "Examples:\n  salt-syndic                    run in the foreground with /etc/salt/master and /etc/salt/minion\n  salt-syndic -d                 run in the background\n  salt-syndic -c ./etc -l info   use ./etc and log at level info\n  salt-syndic --check            report mistakes in the configuration",
};

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments = match COMMAND.parse(words.clone()) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let started = arguments.common.start_syndic(arguments.daemon.role(), arguments.daemon.user());
    let (master, minion) = match started {
        Ok(configs) => configs,
        Err(error) => return privileges::report(NAME, error),
    };
    let (pid_file, log_file) = (master.syndic_pidfile.clone(), master.syndic_log_file.clone());
    let directories = [minion.pki_dir.clone(), master.cachedir.clone()];
    let (user, is_sandboxed) = (master.user.clone(), master.sandbox);
    let key_file = brine_master_access::access::root_key_path(&master.cachedir, user.as_deref());
    let settings = Settings::new(master, minion, key_file);
    let check = || settings.as_ref().err().map(Finding::refused).into_iter().collect();
    if let Some(status) = arguments.daemon.only_check(check) {
        return Ok(status);
    }
    let settings = settings?;
    let paths = DaemonPaths {
        pid_file: &pid_file,
        log_file: arguments.common.log_file(&log_file),
        directories: directories.iter().map(AsRef::as_ref).collect(),
        existing: Vec::new(),
        user: user.as_deref(),
        sandbox: is_sandboxed.then_some(Profile::SYNDIC),
    };
    if let Some(status) = arguments.daemon.detach(NAME, &words, &paths)? {
        return Ok(status);
    }
    daemon::log_panics();
    let runtime = runtime::current_thread()?;
    let result = runtime::block_on(&runtime, async {
        // Installed before the PID file exists: its readers may send signals at once.
        let signals = Signals::install()?;
        let _pid_file = arguments.daemon.write_pid(&pid_file)?;
        let shutdown = signals.cancelling(|signal| {
            tracing::warn!("The Salt Syndic Minion is shutdown. Syndic received a {signal}. Exited.");
        });
        brine_syndic::run(settings, shutdown).await?;
        Ok(ExitCode::SUCCESS)
    });
    // A thread that does not end must not block the exit.
    std::mem::forget(runtime);
    result
}
