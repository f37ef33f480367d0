//! `brine doctor`: examines the master, minion, REST API and syndic of this host, and mends what is safe to mend.

mod bundle;
mod master;
mod minion;
mod report;
mod roles;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use brine_config::DEFAULT_DIRECTORY;
use brine_doctor::finding::{has_errors, sorted};
use brine_doctor::repair::trusted;
use brine_doctor::{Daemon, Finding, Role, not_ended};
use brine_value::Map;
use clap::{CommandFactory, Parser};

use self::report::Made;
use self::roles::{Configured, Host};
use super::{runtime, usage};
use crate::ui::{ColourChoice, Ui};

pub const USAGE: &str = "brine doctor [options]";

/// The time to find the roles of this host, and that to examine them. More than those of all parts, which say more about
/// what hangs.
const DEADLINE: Duration = Duration::from_secs(12);

/// Find out what is wrong with the master, minion, REST API or syndic of this host, and what mends it
#[derive(Parser, Debug)]
#[command(
    after_help = "The exit status is 1 if a finding is an error, else 0. Nothing is changed without --fix.\n\nExamples:\n  sudo brine doctor                     examine what this host has\n  sudo brine doctor --fix               mend modes, owners and what was left over\n  sudo brine doctor --bundle a.tar.gz   collect what a bug report needs, without secrets\n  brine doctor --minion -c ./etc        only the minion with ./etc/minion\n  brine doctor --json | jq '.findings[0].mend'\n  salt '*' brine.doctor                 ask all minions"
)]
struct Arguments {
    /// The configuration directory (default: /etc/salt)
    #[arg(short, long, value_name = "DIR", env = "SALT_CONFIG_DIR", hide_env = true)]
    config_dir: Option<PathBuf>,
    /// Examine the master, whether or not this host seems to have one
    #[arg(long)]
    master: bool,
    /// Examine the minion, whether or not this host seems to have one
    #[arg(long)]
    minion: bool,
    /// Examine the REST API, whether or not this host seems to have one
    #[arg(long)]
    api: bool,
    /// Examine the syndic, whether or not this host seems to have one
    #[arg(long)]
    syndic: bool,
    /// Mend what is safe: modes and owners of directories and keys, missing directories, PID files and sockets left over
    #[arg(long)]
    fix: bool,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Write versions, masked configuration, ends of logs, metrics and findings to a new file for a bug report
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Never use colours
    #[arg(long, alias = "no-colour")]
    no_color: bool,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Everything that was found out about this host.
struct Examined {
    host: Host,
    findings: Vec<Finding>,
    /// The metrics of a running master.
    metrics: Option<Map>,
    time: Duration,
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse("brine doctor", USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let named = arguments.config_dir.clone().filter(|path| !path.as_os_str().is_empty());
    if let Some(named) = named.as_ref().filter(|named| !named.is_dir()) {
        bail!(
            "the configuration directory {} is invalid: it does not exist or is not a directory; name an existing one with -c \
             or SALT_CONFIG_DIR",
            named.display()
        );
    }
    let directory = named.unwrap_or_else(|| DEFAULT_DIRECTORY.into());
    let directory = std::path::absolute(&directory).unwrap_or(directory);
    let mut roles = Vec::new();
    roles.extend(arguments.master.then_some(Role::Master));
    roles.extend(arguments.minion.then_some(Role::Minion));
    roles.extend(arguments.api.then_some(Role::Api));
    roles.extend(arguments.syndic.then_some(Role::Syndic));
    let mut examined = examine(&directory, &roles);
    let mut made = Vec::new();
    let choice = if arguments.no_color { ColourChoice::Never } else { ColourChoice::Auto };
    let mut ui = Ui::new(choice);
    if arguments.fix {
        made = mend(&examined, &directory, |line| if arguments.json { Ok(()) } else { ui.print(line) })?;
        if made.iter().any(|one| one.error.is_none()) {
            examined = examine(&directory, &roles);
        }
    }
    let written = match &arguments.bundle {
        Some(path) => {
            trusted_configuration(&examined.host, &directory).context("writing the bundle failed")?;
            bundle::write(path, &examined).with_context(|| format!("writing the bundle {} failed", path.display()))?;
            Some(path.as_path())
        }
        None => None,
    };
    if arguments.json {
        ui.print(&report::json(&examined, &made))?;
    } else {
        let colours = ui.colours();
        ui.print(&report::text(&examined, &made, written, colours))?;
    }
    Ok(if has_errors(&examined.findings) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Examines the roles of this host. Whatever hangs, it returns within two deadlines.
fn examine(directory: &Path, roles: &[Role]) -> Examined {
    let start = Instant::now();
    let (place, roles) = (directory.to_owned(), roles.to_vec());
    let host = brine_doctor::within(DEADLINE, move || Host::find(&place, &roles)).unwrap_or_else(|| Host {
        findings: vec![not_ended(Role::Minion, "the configuration", DEADLINE)],
        ..Host::default()
    });
    let mut findings = host.findings.clone();
    let mut metrics = None;
    // Each on threads of its own: the master waits for minions, and the minion for masters. Parts come as they end.
    let (sender, receiver) = mpsc::channel();
    let mut waiting = Vec::new();
    for configured in &host.configured {
        for part in [Part::Host, Part::Others] {
            let (configured, sender) = (Arc::clone(configured), sender.clone());
            let role = configured.role();
            let examine = move || {
                let result = examine_part(&configured, part);
                _ = sender.send((role, part, result));
            };
            if std::thread::Builder::new().name(format!("doctor-{}", role.name())).spawn(examine).is_ok() {
                waiting.push((role, part));
            }
        }
    }
    drop(sender);
    let end = Instant::now() + DEADLINE;
    while !waiting.is_empty() {
        let wait = end.saturating_duration_since(Instant::now());
        let Ok((role, part, (part_findings, of_master))) = receiver.recv_timeout(wait) else { break };
        waiting.retain(|one| *one != (role, part));
        findings.extend(part_findings);
        metrics = of_master.or(metrics);
    }
    findings.extend(waiting.into_iter().map(|(role, part)| not_ended(role, part.name(), DEADLINE)));
    Examined { host, findings: sorted(findings), metrics, time: start.elapsed() }
}

/// A part of the examination of a role.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// What this host tells.
    Host,
    /// What the running daemon and those it talks to tell.
    Others,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Host => "this host",
            Part::Others => "what others answer",
        }
    }
}

/// Examines a part of one role, and returns the findings and the metrics of a running master.
fn examine_part(configured: &Arc<Configured>, part: Part) -> (Vec<Finding>, Option<Map>) {
    let installation = configured.installation();
    let role = installation.role;
    let daemon = Daemon::find(&installation);
    if part == Part::Host {
        let mut examinations = brine_doctor::examinations(&installation, &daemon, false);
        let file = installation.config_dir.join(role.config_file());
        let configured = Arc::clone(configured);
        examinations.push(("options", Box::new(move || configured.check_options(file))));
        return (brine_doctor::run(role, examinations), None);
    }
    let Ok(runtime) = runtime::current_thread() else { return (vec![not_ended(role, part.name(), DEADLINE)], None) };
    let findings = runtime::block_on(&runtime, async {
        match &**configured {
            Configured::Master(config) => Box::pin(master::examine(config, &installation, &daemon)).await,
            Configured::Minion(config) => (minion::examine(config, &installation, &daemon).await, None),
            Configured::Api(_) | Configured::Syndic(..) => (Vec::new(), None),
        }
    });
    // The lookup of a name may go on for longer than its answer is awaited.
    runtime.shutdown_background();
    findings
}

/// Makes the mends of all findings, after `print` has listed them.
fn mend(
    examined: &Examined,
    directory: &Path,
    mut print: impl FnMut(&str) -> std::io::Result<()>,
) -> anyhow::Result<Vec<Made>> {
    let mut repairs: Vec<_> = examined.findings.iter().filter_map(|one| one.repair.clone()).collect();
    // Directories before what is in them.
    repairs.dedup();
    if repairs.is_empty() {
        return Ok(Vec::new());
    }
    trusted_configuration(&examined.host, directory).context("mending failed")?;
    print("Mends:")?;
    for repair in &repairs {
        print(&format!("  {}", crate::escape::escape_line(&repair.to_string())))?;
    }
    let made = repairs.into_iter().map(|repair| {
        let error = repair.apply().err().map(|error| error.to_string());
        Made { repair, error }
    });
    Ok(made.collect())
}

/// Refuses to write or collect, as root, what a configuration names that another user can change.
fn trusted_configuration(host: &Host, directory: &Path) -> anyhow::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    for path in std::iter::once(directory).chain(host.files.iter().map(PathBuf::as_path)).filter(|path| path.exists()) {
        trusted(path).with_context(|| {
            format!("the configuration {} is not to be trusted by root; run this as its owner", path.display())
        })?;
    }
    Ok(())
}
