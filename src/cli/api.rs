//! `salt-api`: the daemon of the REST API.

use std::ffi::OsString;
use std::process::ExitCode;

use brine_api::Server;
use brine_sandbox::Profile;

use super::daemon::{self, DaemonCommand, Signals};
use super::privileges::{self, OwnedPaths};
use super::runtime;

const NAME: &str = "salt-api";
pub const COMMAND: DaemonCommand = DaemonCommand {
    name: NAME,
    usage: "salt-api [options]",
    about: "Serve the REST API of the master on this host",
    examples: "Examples:\n  salt-api                       run in the foreground with /etc/salt/master\n  salt-api -d                    run in the background\n  salt-api -c ./etc -l info      use ./etc/master and log at level info\n  salt-api --check               report mistakes in rest_cherrypy or rest_tornado",
};

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments = match COMMAND.parse(words.clone()) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let config = match arguments.common.start_api(arguments.daemon.role(), arguments.daemon.user()) {
        Ok(config) => config,
        Err(error) => return privileges::report(NAME, error),
    };
    if let Some(status) = arguments.daemon.only_check(|| brine_api::check(&config)) {
        return Ok(status);
    }
    let log_file = arguments.common.log_file(&config.api_logfile);
    if let Some(status) = arguments.daemon.go_to_background(&words, NAME, &config.api_pidfile, log_file)? {
        return Ok(status);
    }
    // The master's directories keep their owner: the API's user may be another one.
    let owned = OwnedPaths {
        existing: vec![log_file.to_owned()],
        pid_file: Some(arguments.daemon.pid_file(&config.api_pidfile)),
        ..OwnedPaths::default()
    };
    if let Err(error) = daemon::enter(config.sandbox.then_some(Profile::API), config.user.as_deref(), &owned) {
        return Ok(error.exit(NAME));
    }
    brine_api::metrics::register();
    let key_file = brine_master_access::access::api_key_path(&config.cachedir);
    let runtime = runtime::multi_thread(None)?;
    runtime::block_on(&runtime, async {
        let server = Server::start(&config, key_file).await?;
        // Installed before the PID file exists: its readers may send signals at once.
        let mut signals = Signals::install()?;
        let _pid_file = arguments.daemon.write_pid(&config.api_pidfile)?;
        tracing::info!(url = server.url(), "the API serves");
        let signal = signals.ended().await;
        tracing::info!(signal, "the API stops");
        server.stop().await;
        Ok(ExitCode::SUCCESS)
    })
}
