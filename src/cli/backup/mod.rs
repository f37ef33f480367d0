//! `brine backup` and `brine restore`: the keys, the store and the configuration of a master in one file.
//!
//! `archive` has the format. A running master writes the snapshot of its store itself (runner function
//! `backup.snapshot`); the store of a stopped one is read here.

mod archive;
mod restore;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use brine_bus::store::{Store, StoreError};
use brine_config::MasterConfig;
use brine_function::Args;
use brine_runtime::executors::MayBlock;
use brine_system::files::{Attributes, Draft, Entry, Links};
use brine_value::Map;
use clap::{CommandFactory, Parser};

use super::client::MasterClient;
use super::common::CommonOptions;
use super::{runtime, saltfile, usage};
use crate::ui::print_plain_error;
use archive::{Manifest, Writer};

pub use restore::{USAGE as RESTORE_USAGE, options as restore_options, run as restore};

pub const USAGE: &str = "brine backup [options] FILE";
const NAME: &str = "brine backup";
/// The page cache of a store that is read for its backup, in bytes.
const CACHE: usize = 16 << 20;

/// Write the keys, the store and the configuration of the master on this host to one file
#[derive(Parser, Debug)]
#[command(
    after_help = "The master may be running. The file has its private keys: keep it as you keep them.\n\nExamples:\n  brine backup /var/backups/salt-master.tar.gz\n  brine backup --roots - | ssh backup 'cat > salt-master.tar.gz'   with states and pillar\n  brine restore salt-master.tar.gz                                 on another machine"
)]
struct Arguments {
    /// The new file, or `-` for standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Include the directories of file_roots and pillar_roots
    #[arg(long)]
    roots: bool,
    #[command(flatten)]
    common: CommonOptions,
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
    let config = arguments.common.start_with_master(&Map::new())?;
    let directory = arguments.common.config_file("");
    let files = MasterConfig::load(&directory, &saltfile::overridden(&Map::new()))?.files;
    let mut units = files;
    units
        .extend(["roster", "autosign_file"].map(|name| directory.join(name)).into_iter().filter(|path| path.is_file()));
    units.push(config.pki_dir.clone());
    if arguments.roots {
        let roots = config.file_roots.values().chain(config.pillar_roots.values()).flatten();
        units.extend(roots.map(PathBuf::from).filter(|path| path.is_dir()));
    }
    if !config.pki_dir.join("master.pem").exists() {
        bail!(
            "{} has no master.pem: no master has run with this configuration, or only another user may read it; run `brine backup` as root, with its configuration (-c DIR)",
            config.pki_dir.display()
        );
    }
    let snapshot = Snapshot::of(&config)?;
    let manifest = Manifest::new(&config, units);
    let written = if arguments.file == Path::new("-") {
        if io::stdout().is_terminal() {
            return Ok(usage::error(
                NAME,
                USAGE,
                "standard output is a terminal: name a file, or pipe it to a program",
            ));
        }
        write(io::stdout().lock(), &manifest, &snapshot)?.0
    } else {
        let failed = || format!("writing {} failed", arguments.file.display());
        let draft = Entry::resolve(&arguments.file, Links::Keep).and_then(Draft::create).with_context(failed)?;
        let (written, _) = write(draft.file.try_clone().with_context(failed)?, &manifest, &snapshot)?;
        if !draft.finish_new(Attributes::mode(0o600)).with_context(failed)? {
            bail!("{} exists: choose another name, or remove it", arguments.file.display());
        }
        written
    };
    print_plain_error(format_args!(
        "{written} files with the private keys of the master are in {}; `brine restore` brings them back",
        arguments.file.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Writes the archive. Returns the number of files.
fn write<W: Write>(target: W, manifest: &Manifest, snapshot: &Snapshot) -> anyhow::Result<(u64, W)> {
    let mut writer = Writer::begin(target, manifest)?;
    for unit in &manifest.units {
        writer.add(unit)?;
    }
    if let Some(path) = &snapshot.path {
        writer.add_file(path, &manifest.store)?;
    }
    writer.finish()
}

/// A snapshot of the store, which is removed again.
struct Snapshot {
    /// `None` if there is no store.
    path: Option<PathBuf>,
}

impl Snapshot {
    fn of(config: &MasterConfig) -> anyhow::Result<Self> {
        if !config.store_path().exists() {
            print_plain_error(format_args!(
                "{} does not exist: the backup is without a store",
                config.store_path().display()
            ));
            return Ok(Self { path: None });
        }
        let path = config.snapshot_path();
        let runtime = runtime::current_thread()?;
        match Store::open(&config.store_path(), CACHE) {
            Ok((store, _)) => {
                brine_system::user_files::remove_file(&path)
                    .or_else(ignore_absent)
                    .context("removing an old snapshot failed")?;
                let store = store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone()));
                store.write_snapshot(&path)?;
                runtime.block_on(store.close());
            }
            Err(StoreError::InUse(_)) => {
                let client = MasterClient::new(config)?;
                runtime::block_on(&runtime, client.ask_runner("backup.snapshot", Args::default()))
                    .context("the snapshot of the running master's store failed")?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Self { path: Some(path) })
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && let Err(error) = brine_system::user_files::remove_file(path)
        {
            tracing::warn!(path = %path.display(), %error, "removing the snapshot of the store failed");
        }
    }
}

fn ignore_absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
