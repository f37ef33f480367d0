//! `brine link`: creates links with the names of Salt's tools, and installs completions and manual pages beside them.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use brine_system::files;
use clap::{CommandFactory, Parser};

use super::completion::{self, Shell};
use super::{TOOLS, man, usage};
use crate::ui::print_plain;

pub const USAGE: &str = "brine link [options] DIR";

/// Create links with the names of Salt's tools to this binary
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  brine link /usr/local/bin\n  brine link --force /usr/bin   # replace Salt's own tools\n  brine link --completion --man /usr/local/bin   # and files in /usr/local/share"
)]
struct Arguments {
    /// The directory of the links
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Replace existing files
    #[arg(short, long)]
    force: bool,
    /// Install the completions of bash, zsh and fish in DIR/../share, too
    #[arg(long)]
    completion: bool,
    /// Install the manual pages in DIR/../share/man/man1, too
    #[arg(long)]
    man: bool,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
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
    let share = arguments.directory.parent().unwrap_or(&arguments.directory).join("share");
    if arguments.completion {
        // Bash and fish read the file with the name of the command that is typed.
        for name in ["brine"].into_iter().chain(TOOLS.iter().map(|tool| tool.name)) {
            let bash = share.join("bash-completion/completions").join(name);
            write(&bash, &completion::script(Shell::Bash))?;
            write(&share.join(format!("fish/vendor_completions.d/{name}.fish")), &completion::script(Shell::Fish))?;
        }
        write(&share.join("zsh/site-functions/_brine"), &completion::script(Shell::Zsh))?;
    }
    if arguments.man {
        man::write_pages(&share.join("man/man1"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file in a directory that may be missing.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let failed = || format!("writing {} failed", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).with_context(failed)?;
    files::write_atomic(path, text.as_bytes(), 0o644).with_context(failed)?;
    print_plain(path.display());
    Ok(())
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
