//! `brine up`: a whole system on this machine, below `./.brine`: a master, minions, and the event bus to
//! look at.
//!
//! `system.rs` writes the configuration and runs the daemons, `story.rs` tells what goes over the bus.

mod story;
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
use story::Story;
use system::System;
use tokio::signal::unix::{SignalKind, signal};

use super::{stdout_reader, usage};
use crate::ui::{CLOSED_PIPE_STATUS, ColourChoice, Ui};

const NAME: &str = "brine up";
const USAGE: &str = "brine up [options]";
/// How long it may take until all minions are in their highstate.
const STORY_TIME: Duration = Duration::from_secs(60);

/// Run a master and minions below ./.brine and show the event bus.
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  brine up                 a master and two minions; Ctrl-C ends them\n  brine up --minions 20    more of them\n  brine up --once -v       show everything once, and end"
)]
struct Arguments {
    /// How many minions
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    minions: u32,
    /// End when all minions are in their highstate
    #[arg(long)]
    once: bool,
    /// Show the bodies of events too
    #[arg(short, long)]
    verbose: bool,
    /// The folder for everything
    #[arg(long, value_name = "DIR", default_value = ".brine")]
    dir: PathBuf,
    /// No colours
    #[arg(long)]
    no_color: bool,
    /// Show the version and exit
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse(NAME, USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let folder = std::path::absolute(&arguments.dir)?;
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let _lock = lock(&folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(show(&arguments, &folder))
}

/// One system a folder. The lock ends with the process, however that ends.
fn lock(folder: &Path) -> anyhow::Result<Flock<std::fs::File>> {
    let path = folder.join("up.lock");
    let file = std::fs::File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
        anyhow::anyhow!("a system is up in {} already: use it, or end it with Ctrl-C where it runs", folder.display())
    })
}

async fn show(arguments: &Arguments, folder: &Path) -> anyhow::Result<ExitCode> {
    let mut ui = Ui::new(if arguments.no_color { ColourChoice::Never } else { ColourChoice::Auto });
    let mut system = System::start(folder, arguments.minions)?;
    let result = tokio::select! {
        result = follow(arguments, &mut system, &mut ui) => result,
        () = stdout_reader::gone() => Err(io::Error::from(ErrorKind::BrokenPipe).into()),
    };
    system.stop();
    // `brine up | head` has shown what was wanted of it.
    let is_closed = |error: &anyhow::Error| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    };
    if result.as_ref().is_err_and(is_closed) { Ok(ExitCode::from(CLOSED_PIPE_STATUS)) } else { result }
}

/// Waits for the end of the terminal that the command runs in. Never returns if hang-ups are ignored, as by `nohup`.
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
    ui.try_print(&story::heading(system, ui.colours()))?;
    system.start_minions()?;
    let mut story = Story::new(system.minions(), ui.colours(), arguments.verbose);
    let mut signals = super::daemon::Signals::install()?;
    let deadline = tokio::time::Instant::now() + STORY_TIME;
    let (mut told, mut checks) = (false, tokio::time::interval(Duration::from_millis(500)));
    let mut hung_up = std::pin::pin!(hung_up());
    loop {
        let frames = tokio::select! {
            frames = events.recv() => frames.context("the master is gone")?,
            _ = signals.ended() => {
                ui.try_print("\nstopping")?;
                return Ok(if told || !arguments.once { ExitCode::SUCCESS } else { ExitCode::FAILURE });
            }
            hung_up = &mut hung_up => {
                hung_up?;
                return Ok(ExitCode::FAILURE);
            }
            _ = checks.tick() => {
                system.check()?;
                continue;
            }
            () = tokio::time::sleep_until(deadline), if !told => {
                bail!("not all minions were in their highstate within {STORY_TIME:?}: {}; {} says more", story.missing(), system.log_dir().display());
            }
        };
        let Some(Ok(event)) = frames.into_iter().next().map(Event::from_frame) else { continue };
        for line in story.tell(&event) {
            ui.try_print(&line)?;
        }
        if !told && story.is_complete() {
            told = true;
            ui.try_print(&story.summary(system))?;
            if let Some(failure) = story.failure() {
                bail!("{failure}");
            }
            if arguments.once {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}
