//! `brine up`: runs a master and minions below `./.brine` and shows the event bus.
//!
//! `system.rs` writes the configuration and runs the daemons, `report.rs` formats the events and the summary.

mod report;
mod system;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use brine_bus::SocketNames;
use brine_event::Event;
use brine_zmtp::{Limits, Subscriber};
use clap::{CommandFactory, Parser};
use nix::fcntl::{Flock, FlockArg};
use report::Report;
use system::System;
use tokio::signal::unix::{SignalKind, signal};

use super::{runtime, stdout_reader, usage};
use crate::ui::{CLOSED_PIPE_STATUS, ColourChoice, Ui};

const NAME: &str = "brine up";
pub const USAGE: &str = "brine up [options]";
/// The timeout of the first highstates.
const HIGHSTATE_TIMEOUT: Duration = Duration::from_secs(60);

/// Run a master and minions below ./.brine and show the event bus.
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  brine up                 run a master and two minions until Ctrl-C\n  brine up --minions 20    run 20 minions\n  brine up --web           also serve the REST API and the console\n  brine up --once -v       show all events in full, and exit after the first highstates"
)]
struct Arguments {
    /// The number of minions
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    minions: u32,
    /// Serve the REST API and the console, and show a login for them
    #[arg(long)]
    web: bool,
    /// Exit when all minions have returned their highstate
    #[arg(long)]
    once: bool,
    /// Show the data of events in full
    #[arg(short, long)]
    verbose: bool,
    /// The directory of all files
    #[arg(long, value_name = "DIR", default_value = ".brine")]
    dir: PathBuf,
    /// Never use colours
    #[arg(long)]
    no_color: bool,
    /// Show the version and exit
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse(NAME, USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let directory = std::path::absolute(&arguments.dir)?;
    std::fs::create_dir_all(&directory).with_context(|| format!("creating {} failed", directory.display()))?;
    let _lock = lock(&directory)?;
    let runtime = runtime::current_thread()?;
    runtime::block_on(&runtime, show(&arguments, &directory))
}

/// Locks the directory, so that it has one running system. The lock ends with the process.
fn lock(directory: &Path) -> anyhow::Result<Flock<std::fs::File>> {
    let path = directory.join("up.lock");
    let file = brine_system::user_files::open_truncated(&path, 0o666)
        .with_context(|| format!("creating {} failed", path.display()))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
        anyhow::anyhow!(
            "a system is already running in {}: use it, or stop it with Ctrl-C in its terminal",
            directory.display()
        )
    })
}

async fn show(arguments: &Arguments, directory: &Path) -> anyhow::Result<ExitCode> {
    let mut ui = Ui::new(if arguments.no_color { ColourChoice::Never } else { ColourChoice::Auto });
    let mut system = System::start(directory, arguments.minions, arguments.web)?;
    let result = tokio::select! {
        result = follow(arguments, &mut system, &mut ui) => result,
        () = stdout_reader::closed() => Err(io::Error::from(ErrorKind::BrokenPipe).into()),
    };
    system.stop();
    // As in `brine up | head`.
    let is_closed = |error: &anyhow::Error| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    };
    if result.as_ref().is_err_and(is_closed) { Ok(ExitCode::from(CLOSED_PIPE_STATUS)) } else { result }
}

/// Waits for SIGHUP. Never returns if it is ignored, as with `nohup`.
async fn hung_up() -> anyhow::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let is_ignored =
        ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1);
    if is_ignored {
        std::future::pending::<()>().await;
    }
    signal(SignalKind::hangup())?.recv().await;
    Ok(())
}

async fn follow(arguments: &Arguments, system: &mut System, ui: &mut Ui) -> anyhow::Result<ExitCode> {
    let endpoint = SocketNames::master().publish_endpoint(&system.sock_dir());
    let mut events = loop {
        match Subscriber::connect(&endpoint, &[b""], Limits::default()).await {
            Ok(events) => break events,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        system.check()?;
    };
    ui.try_print(&report::heading(system, ui.colours()))?;
    if let Some(web) = system.start_web().await? {
        ui.try_print(&web)?;
    }
    system.start_minions()?;
    let mut report = Report::new(system.minions(), ui.colours(), arguments.verbose);
    let mut signals = super::daemon::Signals::install()?;
    let deadline = tokio::time::Instant::now() + HIGHSTATE_TIMEOUT;
    let (mut is_complete, mut checks) = (false, tokio::time::interval(Duration::from_millis(500)));
    let mut hung_up = std::pin::pin!(hung_up());
    loop {
        let frames = tokio::select! {
            frames = events.recv() => frames.context("the master has stopped")?,
            _ = signals.ended() => {
                ui.try_print("\nstopping")?;
                return Ok(if is_complete || !arguments.once { ExitCode::SUCCESS } else { ExitCode::FAILURE });
            }
            hung_up = &mut hung_up => {
                hung_up?;
                return Ok(ExitCode::FAILURE);
            }
            _ = checks.tick() => {
                system.check()?;
                continue;
            }
            () = tokio::time::sleep_until(deadline), if !is_complete => {
                bail!("not all minions have returned their highstate within {HIGHSTATE_TIMEOUT:?}: {} missing; see the logs in {}", report.missing(), system.log_dir().display());
            }
        };
        let Some(Ok(event)) = frames.into_iter().next().map(Event::from_frame) else { continue };
        for line in report.lines(&event) {
            ui.try_print(&line)?;
        }
        if !is_complete && report.is_complete() {
            is_complete = true;
            ui.try_print(&report.summary(system))?;
            if let Some(failure) = report.failure() {
                bail!("{failure}");
            }
            if arguments.once {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}
