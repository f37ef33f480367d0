//! The tools: one file each, and one line in [`TOOLS`]. The binary is the tool whose name it is called
//! by (a link `salt-key`), or the one that its first word names (`brine key`, `brine salt-key`).

mod call;
mod client;
mod common;
mod credentials;
mod daemon;
mod event_line;
mod host;
mod key;
mod link;
mod log_file;
mod log_format;
mod logging;
mod master;
mod minion;
mod privileges;
mod run;
mod salt;
mod salt_options;
mod stdout_reader;
mod swarm;
mod up;
mod usage;

use crate::ui::{print_plain, print_plain_error};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

/// One tool.
struct Tool {
    /// Salt's name for it.
    name: &'static str,
    /// The word behind `brine`.
    word: &'static str,
    /// What it is for, in a few words.
    about: &'static str,
    /// Runs it with the words behind its name. An error is told on stderr, and the exit status is 1.
    run: fn(Vec<OsString>) -> anyhow::Result<ExitCode>,
}

/// All tools that Salt has too.
const TOOLS: &[Tool] = &[
    Tool { name: "salt", word: "salt", about: "publish jobs to minions and show their returns", run: salt::run },
    Tool { name: "salt-call", word: "call", about: "call a function on this host", run: call::run },
    Tool { name: "salt-key", word: "key", about: "accept, reject, list and delete the keys of minions", run: key::run },
    Tool { name: "salt-master", word: "master", about: "the daemon that minions connect to", run: master::run },
    Tool { name: "salt-minion", word: "minion", about: "the daemon on every host", run: minion::run },
    Tool { name: "salt-run", word: "run", about: "call functions of the master, follow the event bus", run: run::run },
];

/// What only `brine` itself can do.
const COMMANDS: &[Tool] = &[
    Tool { name: "brine up", word: "up", about: "run a master and minions here, and show the event bus", run: up::run },
    Tool {
        name: "brine swarm",
        word: "swarm",
        about: "simulate many minions, to see what a master does with a fleet",
        run: swarm::run,
    },
    Tool {
        name: "brine link",
        word: "link",
        about: "make links named salt-key, ... in a folder, so that scripts written for Salt go on working",
        run: link::run,
    },
];

/// Runs the tool that is meant; `words` starts with the name that the binary was called by.
pub fn main(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut words: Vec<_> = words.into_iter().collect();
    if let Some(status) = brine_minion::process::launcher::intercept(&words) {
        return ExitCode::from(status);
    }
    let called = words.first().map(|word| Path::new(word).file_name().unwrap_or(word).to_owned());
    let linked = TOOLS.iter().find(|tool| called.as_deref().is_some_and(|called| called == tool.name));
    if let Some(tool) = linked {
        return start(tool, words.split_off(1));
    }
    let word = words.get(1).map(|word| word.to_string_lossy().into_owned());
    match word.as_deref() {
        None | Some("-h" | "--help" | "help") => {
            print_plain(help());
            ExitCode::SUCCESS
        }
        Some("-V" | "--version") => {
            print_plain(format_args!("brine {}", brine_config::VERSION));
            ExitCode::SUCCESS
        }
        Some(word) => match TOOLS.iter().chain(COMMANDS).find(|tool| tool.word == word || tool.name == word) {
            Some(tool) => start(tool, words.split_off(2)),
            None => usage::error("brine", USAGE, &format!("no such tool: {word}")),
        },
    }
}

fn start(tool: &Tool, words: Vec<OsString>) -> ExitCode {
    (tool.run)(words).unwrap_or_else(|error| {
        if daemon::is_in_background() {
            tracing::error!("{}: {}", tool.name, sentence(&error));
        }
        print_plain_error(format_args!("{}: {}", tool.name, sentence(&error)));
        ExitCode::FAILURE
    })
}

/// An error with its causes, of which many are told by the error above them already.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            let _ = write!(text, ": {cause}");
        }
    }
    text
}

const USAGE: &str = "brine <tool> [options]";

fn help() -> String {
    let mut help = format!("Usage: {USAGE}\n\nAutomation around one event bus, compatible with Salt.\n\nTools:\n");
    for tool in TOOLS.iter().chain(COMMANDS) {
        let names = if TOOLS.iter().any(|known| known.name == tool.name) { tool.name } else { "" };
        let _ = writeln!(help, "  {:<8} {names:<14} {}", tool.word, tool.about);
    }
    help.push_str(
        "\nExamples:\n  brine key -L                  list all keys\n  brine key -a 'web*'           accept the keys of \
         these minions\n  brine key --help              all options of a tool\n  brine link /usr/local/bin     make \
         the links salt-key, ...",
    );
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cause_is_told_twice() {
        let cause = std::io::Error::other("the disk is full");
        let error = brine_system::files::FileError::at("write", "/x")(cause);
        let error = anyhow::Error::new(error).context("no keys");
        assert_eq!(sentence(&error), "no keys: cannot write /x: the disk is full");
    }
}
