//! `brine link`: creates links with the names of Salt's tools.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{CommandFactory, Parser};

use super::{TOOLS, usage};
use crate::ui::print_plain;

const USAGE: &str = "brine link [options] DIR";

/// Create links with the names of Salt's tools to this binary
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  brine link /usr/local/bin\n  brine link --force /usr/bin   # replace Salt's own tools"
)]
struct Arguments {
    /// The directory of the links
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Replace existing files
    #[arg(short, long)]
    force: bool,
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse("brine link", USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let binary = std::env::current_exe().context("finding the path of this program failed")?;
    for tool in TOOLS {
        link(&binary, &arguments.directory.join(tool.name), arguments.force)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn link(binary: &Path, link: &Path, force: bool) -> anyhow::Result<()> {
    let failed = || format!("creating the link {} failed", link.display());
    match fs::symlink_metadata(link) {
        Ok(_) if fs::read_link(link).is_ok_and(|target| target == binary) => return Ok(()),
        Ok(_) if force => fs::remove_file(link).with_context(failed)?,
        Ok(_) => bail!("creating the link {} failed: the file exists; replace it with --force", link.display()),
        Err(_) => {}
    }
    symlink(binary, link).with_context(failed)?;
    print_plain(format_args!("{} -> {}", link.display(), binary.display()));
    Ok(())
}
