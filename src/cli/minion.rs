//! `salt-minion`: the daemon of the minion.

use std::ffi::OsString;
use std::process::ExitCode;

use brine_agent::daemon::Shutdown;
use brine_check::Finding;
use brine_config::MinionConfig;
use brine_sandbox::Profile;
use brine_upgrade::Daemon;
use tokio::sync::oneshot;

use super::daemon::{self, DaemonCommand, DaemonOptions, DaemonPaths, Signals};
use super::privileges;
use super::runtime;

const NAME: &str = "salt-minion";
pub const COMMAND: DaemonCommand = DaemonCommand {
    name: NAME,
    usage: "salt-minion [options]",
    about: "Run jobs of the master on this host",
    examples: "Examples:\n  salt-minion                    run in the foreground with /etc/salt/minion\n  salt-minion -d                 run in the background\n  salt-minion -c ./etc -l info   use ./etc/minion and log at level info\n  salt-minion --check            report mistakes in the configuration and fingerprints of keys, try the master",
};

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments = match COMMAND.parse(words.clone()) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let config = match arguments.common.start_daemon_with_minion(arguments.daemon.role(), arguments.daemon.user()) {
        Ok(config) => config,
        Err(error) => return privileges::report(NAME, error),
    };
    let examine = || {
        let mut findings = brine_agent::check(&config);
        match runtime::current_thread() {
            Ok(runtime) => findings.extend(runtime::block_on(&runtime, brine_agent::check_masters(&config))),
            Err(error) => findings.push(Finding::refused(error)),
        }
        findings
    };
    if let Some(status) = arguments.daemon.only_check(examine) {
        return Ok(status);
    }
    let paths = DaemonPaths {
        pid_file: &config.pidfile,
        log_file: arguments.common.log_file(&config.log_file),
        directories: vec![&config.pki_dir, &config.cachedir, &config.sock_dir],
        existing: vec![config.config_dir.join("minion.d")],
        user: config.user.as_deref(),
        sandbox: config.sandbox.then_some(Profile::MINION),
    };
    if let Some(status) = arguments.daemon.detach(NAME, &words, &paths)? {
        return Ok(status);
    }
    daemon::log_panics();
    let limit = config.upgrade_health_timeout.pause();
    let upgrade = brine_upgrade::start(&config.cachedir, limit, std::env::args_os().collect());
    let result = serve(config, &arguments.daemon, upgrade);
    if let Err(error) = &result {
        upgrade.fail(&format!("the new program ended: {error}"));
    }
    // Returns only if there is no program to execute, or that fails.
    match upgrade.change() {
        Some(error) => Err(error.into()),
        None => result,
    }
}

/// Runs the minion until it is stopped, or has to execute another program.
fn serve(config: MinionConfig, options: &DaemonOptions, upgrade: &Daemon) -> anyhow::Result<ExitCode> {
    brine_agent::report(&config)?;
    // One thread serves the sockets; jobs run on an executor.
    let runtime = runtime::current_thread()?;
    let result = runtime::block_on(&runtime, async {
        // Installed before the PID file exists: its readers may send signals at once.
        let signals = Signals::install()?;
        let pid_file = config.pidfile.clone();
        let (begin, at_once) = signals.cancelling_twice(|signal| {
            tracing::warn!("The Salt Minion is shutdown. Minion received a {signal}. Exited.");
        });
        let shutdown = Shutdown { begin, at_once };
        let (serving, served) = oneshot::channel();
        let mut minion = brine_agent::daemon::run(config, serving, shutdown);
        let pid_file = tokio::select! {
            biased;
            Ok(()) = served => options.write_pid(&pid_file)?,
            ended = &mut minion => return Ok(ended.map(|()| ExitCode::SUCCESS)?),
        };
        let ended = minion.await;
        if ended.is_ok() {
            upgrade.stop();
        }
        if upgrade.has_next() || upgrade.is_on_trial() {
            // The process and its PID stay.
            std::mem::forget(pid_file);
        }
        ended?;
        Ok(ExitCode::SUCCESS)
    });
    // A job that does not end must not block the exit, and one that waits on a dropped runtime would panic.
    std::mem::forget(runtime);
    result
}
