//! `brine man`: the manual pages of all tools, from the definitions of their options.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use brine_system::files;
use clap::{CommandFactory, Parser};

use super::{COMMANDS, TOOLS, Tool, usage};
use crate::ui::print_plain;

pub const USAGE: &str = "brine man DIR";

/// Write the manual pages of brine and Salt's tools
#[derive(Parser, Debug)]
#[command(after_help = "Examples:\n  brine man /usr/local/share/man/man1\n  brine man . && man ./salt.1")]
struct Arguments {
    /// The directory of the pages
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse("brine man", USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    write_pages(&arguments.directory)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of all tools to a directory, which may be missing.
///
/// # Errors
/// A file cannot be written.
pub fn write_pages(directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("creating {} failed", directory.display()))?;
    for tool in TOOLS.iter().chain(COMMANDS) {
        let path = directory.join(format!("{}.1", tool.name.replace(' ', "-")));
        files::write_atomic(&path, &page(tool), 0o644).with_context(|| format!("writing {} failed", path.display()))?;
        print_plain(path.display());
    }
    Ok(())
}

/// Returns the page of a tool.
fn page(tool: &Tool) -> Vec<u8> {
    let mut page = Vec::new();
    let name = tool.name.replace(' ', "-");
    let about = format!("{}{}", tool.about[..1].to_uppercase(), &tool.about[1..]);
    let command = tool.command_line().about(about);
    let manual =
        clap_mangen::Man::new(command).title(name).manual("Brine").source(format!("Brine {}", brine_config::VERSION));
    // Writing into memory cannot fail.
    _ = manual.render(&mut page);
    page
}
