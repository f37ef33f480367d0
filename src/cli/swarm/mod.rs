//! `brine swarm`: simulates many minions in one process, to load a master.
//!
//! The minions use Salt's protocol with either cipher, so the master may be Salt's. Each has a session and a
//! connection to the publish port. They share one key and some request connections, and a publish is decrypted once
//! for all of them. `minion.rs` simulates one of them.

mod minion;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use brine_config::MinionConfig;
use brine_crypt::PrivateKey;
use brine_runtime::executors::Executors;
use brine_value::{json, map};
use brine_zmtp::{Endpoint, Limits, RequestClient};
use clap::{CommandFactory, Parser};
use minion::{Shared, SimulatedMinion};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;

use super::log_format::{self, LineFormat};
use super::logging::{self, GranularLevels};
use super::runtime;
use super::usage;
use crate::ui::{ColourChoice, Ui};

const NAME: &str = "brine swarm";
pub const USAGE: &str = "brine swarm --master HOST --minions N [options]";
/// The number of minions that share a request connection.
const MINIONS_PER_CONNECTION: usize = 32;

/// Simulate many minions of one master: they answer test.ping, and states with a fixed return.
#[derive(Parser, Debug)]
#[command(
    after_help = "The master must accept the keys by itself (auto_accept: True): use it for tests only.\n\nExamples:\n  brine swarm --master 127.0.0.1 --minions 1000\n  brine swarm --master salt --minions 100 --cipher aes-192-cbc-hmac   use Salt's cipher\n  brine swarm --master salt --minions 9000 --json     print JSON when all have joined"
)]
struct Arguments {
    /// The address of the master
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    master: String,
    /// The port of the master for requests
    #[arg(long, value_name = "PORT", default_value_t = 4506)]
    port: u16,
    /// The number of minions
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    minions: u32,
    /// The prefix of their ids
    #[arg(long, value_name = "TEXT", default_value = "swarm-")]
    prefix: String,
    /// The session cipher (default: aes-256-gcm if the master supports it, else aes-192-cbc-hmac)
    #[arg(long, value_name = "NAME", value_parser = ["aes-256-gcm", "aes-192-cbc-hmac"])]
    cipher: Option<String>,
    /// The number of concurrent authentications
    #[arg(long, value_name = "N", default_value_t = 64)]
    concurrency: usize,
    /// The directory of their key, so that a second swarm need not be accepted again
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print one line of JSON when all have joined
    #[arg(long)]
    json: bool,
    /// Show the version and exit
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the command until Ctrl-C.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse(NAME, USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let format = LineFormat::parse(log_format::CONSOLE, log_format::TIME)?;
    let levels = GranularLevels::default().filter(LevelFilter::WARN);
    logging::start((levels, format), None)?;
    let own = std::env::temp_dir().join(format!("brine-swarm-{}", std::process::id()));
    let directory = arguments.dir.as_ref().map(std::path::absolute).transpose()?;
    let runtime = runtime::multi_thread(None)?;
    let result = runtime::block_on(&runtime, swarm(&arguments, directory.as_ref().unwrap_or(&own)));
    if directory.is_none() {
        // It exists unless the start failed.
        _ = std::fs::remove_dir_all(&own);
    }
    result
}

async fn swarm(arguments: &Arguments, directory: &PathBuf) -> anyhow::Result<ExitCode> {
    let mut options =
        map! {"pki_dir" => directory.clone(), "master" => &arguments.master, "master_port" => arguments.port};
    options.extend(arguments.cipher.as_ref().map(|cipher| ("ciphers".into(), vec![cipher.clone()].into())));
    let config = Arc::new(MinionConfig::load(std::path::Path::new("/nonexistent"), &options)?.config);
    brine_system::files::create_private_dir(directory)?;
    let key = Arc::new(PrivateKey::load_or_generate(directory, "minion", config.keysize)?);
    let endpoint = Endpoint::Tcp(arguments.master.clone(), arguments.port);
    let limits = Limits { message: config.max_message_size, ..Limits::default() };
    let shared = Arc::new(Shared::new(Semaphore::new(arguments.concurrency.max(1))));
    let (ready, mut readies) = mpsc::unbounded_channel();
    let shutdown = CancellationToken::new();
    let executors = Executors::new(1);
    let start = Instant::now();
    let mut client = RequestClient::new(endpoint.clone(), limits);
    for number in 0..arguments.minions as usize {
        if number % MINIONS_PER_CONNECTION == 0 {
            client = RequestClient::new(endpoint.clone(), limits);
        }
        let id = format!("{}{number}", arguments.prefix);
        let id = id.parse().with_context(|| format!("minion id '{id}' is invalid"))?;
        let minion = SimulatedMinion::new(
            id,
            Arc::clone(&config),
            Arc::clone(&key),
            client.clone(),
            executors.crypto.clone(),
            Arc::clone(&shared),
        )?;
        tokio::spawn(minion.live(ready.clone(), shutdown.clone()));
    }
    let mut ui = Ui::new(ColourChoice::Auto);
    let mut progress = tokio::time::interval(Duration::from_secs(5));
    progress.tick().await;
    let mut there = 0;
    while there < arguments.minions {
        tokio::select! {
            _ = readies.recv() => there += 1,
            _ = progress.tick() => {
                let failure = shared.failure().map(|error| format!("; last error: {error}")).unwrap_or_default();
                ui.print_error(&format!("{there} of {} minions have joined{failure}", arguments.minions))?;
            }
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
        }
    }
    let took = start.elapsed().as_secs_f64();
    if arguments.json {
        ui.print(&json::to_json(&map! {"minions" => there, "seconds" => took}.into()))?;
    } else {
        ui.print(&format!("{there} minions have joined after {took:.2} s; stop them with Ctrl-C"))?;
    }
    tokio::signal::ctrl_c().await?;
    shutdown.cancel();
    ui.print_error(&format!("{} returns sent", shared.returns()))?;
    Ok(ExitCode::SUCCESS)
}
