//! `salt-master`: the daemon of the master.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use brine_master::{Master, StartError};
use brine_sandbox::Profile;
use brine_zmtp::TransportError;

use super::daemon::{self, DaemonCommand, DaemonPaths, Signals};
use super::host::MasterHost;
use super::privileges;
use super::runtime;
use crate::ui::print_plain_error;

const NAME: &str = "salt-master";
pub const COMMAND: DaemonCommand = DaemonCommand {
    name: NAME,
    usage: "salt-master [options]",
    about: "Serve minions: keys, jobs, files, pillar, events",
    examples: "Examples:\n  salt-master                    run in the foreground with /etc/salt/master\n  salt-master -d                 run in the background\n  salt-master -c ./etc -l info   use ./etc/master and log at level info\n  salt-master --check            report mistakes in the configuration and options without effect",
};
/// Salt's exit status when the ports are taken.
const PORTS_TAKEN: u8 = 4;
/// The timeout of a stop. The master itself keeps to a shorter one.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns a hint about an error of listening.
fn listen_hint(error: &TransportError) -> &'static str {
    match error {
        TransportError::Io { source, .. } if source.kind() == std::io::ErrorKind::AddrNotAvailable => {
            "the option 'interface' names no address of this host"
        }
        TransportError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            "choose ports above 1023, or run this as root"
        }
        _ => "is another salt-master running?",
    }
}

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments = match COMMAND.parse(words.clone()) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let config = match arguments.common.start_daemon_with_master(arguments.daemon.role(), arguments.daemon.user()) {
        Ok(config) => config,
        Err(error) => return privileges::report(NAME, error),
    };
    if let Some(status) = arguments.daemon.only_check(|| brine_master::check(&config, brine_master_runners::MODULES)) {
        return Ok(status);
    }
    let paths = DaemonPaths {
        pid_file: &config.pidfile,
        log_file: arguments.common.log_file(&config.log_file),
        directories: vec![&config.pki_dir, &config.cachedir, &config.sock_dir],
        existing: Vec::new(),
        user: config.user.as_deref(),
        sandbox: config.sandbox.then_some(Profile::MASTER),
    };
    if let Some(status) = arguments.daemon.detach(NAME, &words, &paths)? {
        return Ok(status);
    }
    let runtime = runtime::multi_thread(None)?;
    let result = runtime::block_on(&runtime, async {
        let pid_file = config.pidfile.clone();
        let host = Arc::new(MasterHost::new(&config));
        // Installed before the store is opened, which a signal must not leave behind unclosed, and before the PID file
        // exists: its readers may send signals at once.
        let signals = Arc::new(tokio::sync::Mutex::new(Signals::install()?));
        let stop = Arc::clone(&signals);
        let stop = async move {
            let signal = stop.lock().await.ended().await;
            tracing::info!(signal, "the master stops before it has started");
        };
        let master = match Master::start(config, Some(host), brine_master_runners::MODULES, stop).await {
            Ok(Some(master)) => master,
            Ok(None) => return Ok(ExitCode::SUCCESS),
            Err(StartError::Listen(error)) => {
                let message = format!("listening failed: {error}; {}", listen_hint(&error));
                if daemon::is_in_background() {
                    tracing::error!("{message}");
                }
                print_plain_error(format_args!("{NAME}: {message}"));
                print_plain_error("The salt master is shutdown. The ports are not available to bind");
                return Ok(ExitCode::from(PORTS_TAKEN));
            }
            Err(error) => return Err(error.into()),
        };
        let _pid_file = arguments.daemon.write_pid(&pid_file)?;
        let mut status = ExitCode::SUCCESS;
        tokio::select! {
            signal = async { signals.lock().await.ended().await } => tracing::info!(signal, "the master stops"),
            // The init system is expected to restart the master.
            () = master.failed() => status = ExitCode::FAILURE,
        }
        if tokio::time::timeout(STOP_TIMEOUT, master.stop()).await.is_err() {
            tracing::warn!("stopping took more than {STOP_TIMEOUT:?}; terminating what still runs");
        }
        Ok(status)
    });
    // A runner function or template that does not end must not block the exit: dropping the runtime waits for it, and
    // shutting the runtime down makes it panic while it waits for a timer.
    std::mem::forget(runtime);
    result
}
