//! `brine lsp`: a language server for editors.

use std::ffi::OsString;
use std::io::BufReader;
use std::process::ExitCode;

use anyhow::Context;
use brine_lsp::{End, serve};
use clap::{CommandFactory, Parser};

use super::{check, usage};

pub const USAGE: &str = "brine lsp [options]";

/// Serve an editor: findings, completion, definitions and more for SLS, pillar, top and reactor files
#[derive(Parser, Debug)]
#[command(
    after_help = "It speaks the language server protocol on standard input and output, and is started by an editor.\nNothing is run, and no file outside of the editor's folders is read.\n\nExamples:\n  brine lsp                what an editor starts\n  brine lsp --stdio        the same, for editors that name the way of the messages"
)]
struct Arguments {
    /// Use standard input and output, which it does in any case
    #[arg(long)]
    stdio: bool,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Arguments { stdio: _ } = match usage::parse("brine lsp", USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let input = BufReader::new(std::io::stdin());
    let end = serve(input, std::io::stdout(), check::catalogue(), brine_config::VERSION)
        .context("talking to the editor failed")?;
    Ok(match end {
        End::Shutdown | End::Closed => ExitCode::SUCCESS,
        End::Exit => ExitCode::FAILURE,
    })
}
