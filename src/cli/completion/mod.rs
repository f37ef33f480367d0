//! `brine completion`: the completions of shells.
//!
//! The scripts of the shells call this program for each word: [`words`] finds what a word is, [`names`] the names that
//! this host and its running master know. Nothing is started, and nothing is written.

mod names;
mod scripts;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, ValueEnum};

use super::usage;
use crate::ui::print_plain;
pub use scripts::script;
use words::Answer;

pub const USAGE: &str = "brine completion SHELL";

/// Print the completions of a shell for brine and Salt's tools
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  brine completion bash > /etc/bash_completion.d/brine\n  brine completion zsh > \"${fpath[1]}/_brine\"\n  brine completion fish > ~/.config/fish/completions/brine.fish\n  source <(brine completion bash)          # in this shell alone"
)]
struct Arguments {
    /// The shell: bash, zsh or fish
    #[arg(value_name = "SHELL")]
    shell: Option<Shell>,
    /// Print the candidates for the last of these words
    #[arg(long, hide = true)]
    candidates: bool,
    #[arg(hide = true, last = true)]
    words: Vec<String>,
}

/// A shell with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse("brine completion", USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    match arguments.shell {
        _ if arguments.candidates => print_answer(&words::complete(&arguments.words)),
        Some(shell) => print_plain(script(shell).trim_end()),
        None => {
            return Ok(usage::error("brine completion", USAGE, "name the shell: bash, zsh or fish"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the candidates, one a line with its description behind a tab, or what the shell completes by itself.
fn print_answer(answer: &Answer) {
    match answer {
        Answer::Files => print_plain(":files"),
        Answer::Directories => print_plain(":directories"),
        Answer::Candidates(candidates) => {
            for candidate in candidates {
                print_plain(format_args!("{}\t{}", candidate.value, candidate.about));
            }
        }
    }
}
