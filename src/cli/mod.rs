//! The command line tools, one module and one line in [`TOOLS`] each. The binary runs the tool with the name that it
//! was called by (a link `salt-key`), or the one that its first argument names (`brine key`, `brine salt-key`).

mod api;
mod backup;
mod broken_values;
mod call;
mod check;
mod client;
mod common;
mod completion;
mod cp;
mod credentials;
mod custom_outputters;
mod daemon;
pub mod docs;
mod doctor;
mod event_line;
mod exit_status;
mod fmt;
mod host;
mod key;
mod link;
mod log_file;
mod log_format;
mod logging;
mod lsp;
mod man;
mod master;
mod minion;
mod plan_file;
mod privileges;
mod run;
mod runtime;
mod salt;
mod salt_options;
mod saltfile;
pub mod schema;
mod sdb;
mod service_manager;
mod ssh;
mod stdout_reader;
mod swarm;
mod syndic;
mod test;
mod up;
mod usage;

use crate::ui::{print_plain, print_plain_error, print_pointers};
use brine_text::nearest::nearest;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

/// One tool.
struct Tool {
    /// Salt's name of the tool.
    name: &'static str,
    /// The argument of `brine` that selects it.
    command: &'static str,
    /// Its purpose, for the list of tools.
    about: &'static str,
    /// The text after `Usage: `.
    usage: &'static str,
    /// Returns its own options, without those that [`usage::complete`] adds.
    options: fn() -> clap::Command,
    /// Runs the tool with its arguments. An error is printed on stderr, with exit status 1.
    run: fn(Vec<OsString>) -> anyhow::Result<ExitCode>,
}

impl Tool {
    /// Returns the command line of the tool, with the options of all tools.
    fn command_line(&self) -> clap::Command {
        usage::complete(self.name, self.usage, (self.options)())
    }
}

/// The tools of Salt.
const TOOLS: &[Tool] = &[
    Tool {
        name: "salt",
        command: "salt",
        about: "publish jobs to minions and show their returns",
        usage: salt::USAGE,
        options: salt::options,
        run: salt::run,
    },
    Tool {
        name: "salt-api",
        command: "api",
        about: "serve the REST API of the master on this host",
        usage: api::COMMAND.usage,
        options: || api::COMMAND.options(),
        run: api::run,
    },
    Tool {
        name: "salt-call",
        command: "call",
        about: "call a function on this host",
        usage: call::USAGE,
        options: call::options,
        run: call::run,
    },
    Tool {
        name: "salt-cp",
        command: "cp",
        about: "copy files of this host to minions",
        usage: cp::USAGE,
        options: cp::options,
        run: cp::run,
    },
    Tool {
        name: "salt-key",
        command: "key",
        about: "accept, reject, list and delete the keys of minions",
        usage: key::USAGE,
        options: key::options,
        run: key::run,
    },
    Tool {
        name: "salt-master",
        command: "master",
        about: "run the master",
        usage: master::COMMAND.usage,
        options: || master::COMMAND.options(),
        run: master::run,
    },
    Tool {
        name: "salt-minion",
        command: "minion",
        about: "run the minion",
        usage: minion::COMMAND.usage,
        options: || minion::COMMAND.options(),
        run: minion::run,
    },
    Tool {
        name: "salt-ssh",
        command: "ssh",
        about: "call functions on hosts by ssh, without minions",
        usage: ssh::USAGE,
        options: ssh::options,
        run: ssh::run,
    },
    Tool {
        name: "salt-syndic",
        command: "syndic",
        about: "connect the master on this host to masters above",
        usage: syndic::COMMAND.usage,
        options: || syndic::COMMAND.options(),
        run: syndic::run,
    },
    Tool {
        name: "salt-run",
        command: "run",
        about: "call runner functions, follow the event bus",
        usage: run::USAGE,
        options: run::options,
        run: run::run,
    },
];

/// The commands of `brine` alone.
const COMMANDS: &[Tool] = &[
    Tool {
        name: "brine up",
        command: "up",
        about: "run a master and minions on this host and show the event bus",
        usage: up::USAGE,
        options: up::options,
        run: up::run,
    },
    Tool {
        name: "brine swarm",
        command: "swarm",
        about: "simulate a fleet of minions to load a master",
        usage: swarm::USAGE,
        options: swarm::options,
        run: swarm::run,
    },
    Tool {
        name: "brine backup",
        command: "backup",
        about: "write the keys, the store and the configuration of a master to a file",
        usage: backup::USAGE,
        options: backup::options,
        run: backup::run,
    },
    Tool {
        name: "brine restore",
        command: "restore",
        about: "restore a backup of a master",
        usage: backup::RESTORE_USAGE,
        options: backup::restore_options,
        run: backup::restore,
    },
    Tool {
        name: "brine doctor",
        command: "doctor",
        about: "find out what is wrong with this host, and what mends it",
        usage: doctor::USAGE,
        options: doctor::options,
        run: doctor::run,
    },
    Tool {
        name: "brine test",
        command: "test",
        about: "test states without a host",
        usage: test::USAGE,
        options: test::options,
        run: test::run,
    },
    Tool {
        name: "brine check",
        command: "check",
        about: "find what is wrong in SLS, pillar, top and reactor files",
        usage: check::USAGE,
        options: check::options,
        run: check::run,
    },
    Tool {
        name: "brine docs",
        command: "docs",
        about: "show the documentation of a function, an option, an event or anything else",
        usage: docs::USAGE,
        options: docs::options,
        run: docs::run,
    },
    Tool {
        name: "brine lsp",
        command: "lsp",
        about: "serve an editor: findings, completion, definitions for SLS files",
        usage: lsp::USAGE,
        options: lsp::options,
        run: lsp::run,
    },
    Tool {
        name: "brine fmt",
        command: "fmt",
        about: "format SLS files without a change of their data",
        usage: fmt::USAGE,
        options: fmt::options,
        run: fmt::run,
    },
    Tool {
        name: "brine link",
        command: "link",
        about: "create links with the names of Salt's tools in a directory",
        usage: link::USAGE,
        options: link::options,
        run: link::run,
    },
    Tool {
        name: "brine completion",
        command: "completion",
        about: "print the completions of a shell for all tools",
        usage: completion::USAGE,
        options: completion::options,
        run: completion::run,
    },
    Tool {
        name: "brine schema",
        command: "schema",
        about: "print the JSON schema of a configuration, roster or rules file",
        usage: schema::USAGE,
        options: schema::options,
        run: schema::run,
    },
    Tool {
        name: "brine man",
        command: "man",
        about: "write the manual pages of all tools",
        usage: man::USAGE,
        options: man::options,
        run: man::run,
    },
];

/// Runs the selected tool; `words` begins with the name that the binary was called by.
pub fn main(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut words: Vec<_> = words.into_iter().collect();
    if let Some(status) = brine_host::process::launcher::intercept(&words) {
        return ExitCode::from(status);
    }
    if let Some(status) = brine_upgrade::intercept(&words) {
        return ExitCode::from(status);
    }
    if let Some(status) = ssh::intercept(&words) {
        return status;
    }
    brine_context::runners::declare(|| {
        brine_master_runners::runner::MODULES.iter().map(|functions| functions.declaration()).collect()
    });
    brine_doctor::declared::declare(brine_agent::check_options);
    let called = words.first().map(|program| Path::new(program).file_name().unwrap_or(program).to_owned());
    let linked = TOOLS.iter().find(|tool| called.as_deref().is_some_and(|called| called == tool.name));
    if let Some(tool) = linked {
        return start(tool, words.split_off(1));
    }
    let command = words.get(1).map(|command| command.to_string_lossy().into_owned());
    match command.as_deref() {
        Some("help") if words.len() > 2 => match words.get(2).and_then(|name| tool(&name.to_string_lossy())) {
            Some(tool) => start(tool, vec!["--help".into()]),
            None => no_such_tool(&words.get(2).map(|name| name.to_string_lossy()).unwrap_or_default()),
        },
        None | Some("-h" | "--help" | "help") => {
            print_plain(help());
            ExitCode::SUCCESS
        }
        Some("-V" | "--version") => {
            print_plain(format_args!("brine {}", brine_config::VERSION));
            ExitCode::SUCCESS
        }
        Some("--versions-report") => {
            print_plain(usage::versions(&format!("brine {}", brine_config::VERSION)));
            ExitCode::SUCCESS
        }
        Some(command) => match tool(command) {
            Some(tool) => start(tool, words.split_off(2)),
            None => no_such_tool(command),
        },
    }
}

/// Returns the tool with this name or command.
fn tool(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().chain(COMMANDS).find(|tool| tool.command == name || tool.name == name)
}

/// Reports an unknown tool, with the most similar one, or with all.
fn no_such_tool(command: &str) -> ExitCode {
    let names = || TOOLS.iter().chain(COMMANDS).flat_map(|tool| [tool.command, tool.name]);
    let advice = match nearest(command, names().filter(|name| !name.contains(' '))) {
        Some(near) => format!("did you mean '{near}'?"),
        None if command.contains('.') => format!(
            "it looks like a function: `brine call {command}` calls it on this host, `brine salt '*' {command}` on minions, \
             and `brine run {command}` in the master if it is a runner"
        ),
        None => {
            let commands: Vec<&str> = TOOLS.iter().chain(COMMANDS).map(|tool| tool.command).collect();
            format!("choose one of {}", commands.join(", "))
        }
    };
    usage::error("brine", USAGE, &format!("no such tool: {command}; {advice}"))
}

fn start(tool: &Tool, words: Vec<OsString>) -> ExitCode {
    let status = (tool.run)(words).unwrap_or_else(|error| {
        if daemon::is_in_background() {
            tracing::error!("{}: {}", tool.name, sentence(&error));
        }
        print_plain_error(format_args!("{}: {}", tool.name, sentence(&error)));
        ExitCode::FAILURE
    });
    print_pointers();
    status
}

/// Formats an error with its causes, without causes that the message contains already.
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
    let mut help = format!(
        "Usage: {USAGE}\n\nConfiguration management and event-driven automation, compatible with Salt.\n\nTools:\n"
    );
    for tool in TOOLS.iter().chain(COMMANDS) {
        let names = if TOOLS.iter().any(|other| other.name == tool.name) { tool.name } else { "" };
        let _ = writeln!(help, "  {:<10} {names:<14} {}", tool.command, tool.about);
    }
    help.push_str(
        "\nExamples:\n  brine key -L                  list all keys\n  brine key -a 'web*'           accept the pending \
         keys of these minions\n  brine key --help              show the options of a tool\n  brine link /usr/local/bin     create \
         the links salt, salt-key, ...",
    );
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_not_repeated() {
        let cause = std::io::Error::other("the disk is full");
        let error = brine_system::files::FileError::at("write", "/x")(cause);
        let error = anyhow::Error::new(error).context("no keys");
        assert_eq!(sentence(&error), "no keys: cannot write /x: the disk is full");
    }
}
